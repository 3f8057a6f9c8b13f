"""Statements that are no queries: what each is, and the names in it."""

import ast

import pytest

from streamfrom.sqlparse_ext.reading.utility_statements import (
    COMPOUND,
    READERS,
    STATEMENT_VERBS,
    killed_expression,
)
from streamfrom.sqlparse_ext.statements import KillBy, Kind, Opaque
from tests.cases import cases, in_turn
from tests.sqlparse_ext.facts import shape, statement, tables, uses


@in_turn
@pytest.mark.parametrize(
    ("sql", "kind", "options", "target"),
    [
        ("BEGIN", Kind.BEGIN, set(), None),
        ("begin work", Kind.BEGIN, set(), None),
        ("START TRANSACTION", Kind.BEGIN, set(), None),
        ("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", Kind.BEGIN,
         {"CONSISTENT SNAPSHOT", "READ ONLY"}, None),
        ("COMMIT", Kind.COMMIT, set(), None),
        ("COMMIT AND CHAIN NO RELEASE", Kind.COMMIT, {"CHAIN", "NO RELEASE"}, None),
        ("ROLLBACK WORK AND NO CHAIN RELEASE", Kind.ROLLBACK, {"NO CHAIN", "RELEASE"}, None),
        ("SAVEPOINT a", Kind.SAVEPOINT, set(), "a"),
        ("ROLLBACK TO `a b`", Kind.SAVEPOINT, set(), "a b"),
        ("ROLLBACK WORK TO SAVEPOINT s1", Kind.SAVEPOINT, set(), "s1"),
        ("RELEASE SAVEPOINT a", Kind.SAVEPOINT, set(), "a"),
        ("START REPLICA", Kind.OTHER, set(), None),
        ("BEGIN NOT ATOMIC SELECT 1; END", Kind.OTHER, set(), None),
        ("IF 1 THEN SELECT 1; END IF", Kind.OTHER, set(), None),
        ("USE ks", Kind.USE, set(), "ks"),
        ("USE ks;", Kind.USE, set(), "ks"),
        ("USE DATABASE ks", Kind.USE, set(), None),
        ("USE ks.t", Kind.USE, set(), None),
        ("USE `ks:-80@replica`", Kind.USE, set(), "ks:-80@replica"),
        ("PREPARE s FROM 'SELECT 1'", Kind.PREPARE, set(), "s"),
        ("PREPARE s FROM @x", Kind.PREPARE, set(), "s"),
        ("EXECUTE s USING @a", Kind.PREPARE, set(), "s"),
        ("DEALLOCATE PREPARE s", Kind.PREPARE, set(), "s"),
        ("DROP PREPARE s", Kind.PREPARE, set(), "s"),
        ("EXECUTE IMMEDIATE 'SELECT 1'", Kind.PREPARE, set(), None),
        ("CALL p()", Kind.CALL, set(), "p"),
        ("CALL ks.p(1, @x)", Kind.CALL, set(), "ks.p"),
        ("XA START 'x'", Kind.XA, set(), None),
        ("XA COMMIT 'x' ONE PHASE", Kind.XA, set(), None),
        ("SHOW TABLES", Kind.SHOW, set(), None),
        ("SHOW FULL TABLES FROM `ks` LIKE 'a%'", Kind.SHOW, set(), "ks"),
        ("SHOW CREATE DATABASE ks", Kind.SHOW, set(), "ks"),
        ("CREATE DATABASE IF NOT EXISTS ks", Kind.DDL, {"IF NOT EXISTS"}, "ks"),
        ("DROP SCHEMA ks", Kind.DDL, set(), "ks"),
    ],
)  # fmt: skip
def test_kinds_options_and_targets(sql, kind, options, target):
    found = shape(sql)
    assert (found.kind, found.options, found.target) == (kind, options, target)


@pytest.mark.parametrize(
    ("sql", "kind", "expected"),
    [
        ("LOCK TABLES a READ, ks.b AS c WRITE", Kind.LOCK, ["a", "ks.b"]),
        ("UNLOCK TABLES", Kind.LOCK, []),
        ("LOCK INSTANCE FOR BACKUP", Kind.LOCK, []),
        ("FLUSH TABLES WITH READ LOCK", Kind.LOCK, []),
        ("FLUSH TABLES a, b FOR EXPORT", Kind.LOCK, ["a", "b"]),
        ("FLUSH TABLES", Kind.OTHER, []),
        ("LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE ks.t FIELDS TERMINATED BY ','",
         Kind.LOAD, ["ks.t"]),
        ("LOAD INDEX INTO CACHE t", Kind.OTHER, []),
        ("HANDLER ks.t READ FIRST", Kind.OTHER, ["ks.t"]),
        ("OPTIMIZE TABLE a, b", Kind.OTHER, ["a", "b"]),
        ("ANALYZE LOCAL TABLE a", Kind.OTHER, ["a"]),
        ("SHOW CREATE TABLE ks.t", Kind.SHOW, ["ks.t"]),
        ("SHOW FULL COLUMNS FROM t", Kind.SHOW, ["t"]),
        ("SHOW INDEXES IN t IN ks", Kind.SHOW, ["t"]),
        ("DESC ks.t", Kind.EXPLAIN, ["ks.t"]),
        ("DESCRIBE t a", Kind.EXPLAIN, ["t"]),
        ("DO SLEEP(1)", Kind.OTHER, []),
    ],
)  # fmt: skip
def test_tables_that_commands_name(sql, kind, expected):
    assert (shape(sql).kind, tables(sql)) == (kind, expected)


@cases(sql=str, words=ast.literal_eval)
def test_words_behind_the_verb(sql, words):
    assert shape(sql).words == words


@pytest.mark.parametrize("name", ["t", "ks.t", "`ks`.t"])
def test_the_table_whose_vindexes_are_shown_is_named(name):
    assert tables(f"SHOW VSCHEMA VINDEXES ON {name}") == [name.replace("`", "")]


@pytest.mark.parametrize(
    ("sql", "query_only", "by", "operand"),
    [
        ("KILL 5", False, KillBy.ID, 5),
        ("KILL CONNECTION 5", False, KillBy.ID, 5),
        ("kill query 7", True, KillBy.ID, 7),
        ("KILL HARD QUERY 7", True, KillBy.ID, 7),
        ("KILL SOFT CONNECTION 7", False, KillBy.ID, 7),
        ("KILL QUERY ID 8", True, KillBy.QUERY_ID, 8),
        ("KILL USER bob", False, KillBy.USER, "bob"),
        ("KILL QUERY USER 'bob'@'%'", True, KillBy.USER, b"bob"),
        ("KILL CONNECTION_ID()", False, KillBy.ID, None),
        ("KILL 5 + 1", False, KillBy.ID, None),
        ("KILL @x", False, KillBy.ID, None),
    ],
)
def test_kill(sql, query_only, by, operand):
    found = statement(sql)
    kill = found.shape.kill
    assert kill is not None
    assert (kill.query_only, kill.by) == (query_only, by)
    if operand is None:
        assert kill.operand is Opaque.OPAQUE
    elif isinstance(kill.operand, str):
        assert kill.operand == operand
    else:
        assert found.value(kill.operand) == operand


@cases(sql=str, expression=str)
def test_the_expression_of_kill_is_found(sql, expression):
    assert killed_expression(statement(sql)).decode() == expression


def test_what_is_read_by_its_verb_may_begin_a_statement():
    assert set(READERS) - COMPOUND <= STATEMENT_VERBS


def test_a_word_that_begins_no_statement_is_not_there():
    assert "NOPE" not in STATEMENT_VERBS


# Statements that define something: the tables that they name.
@in_turn
@pytest.mark.parametrize(
    ("sql", "kind", "expected"),
    [
        ("CREATE TABLE t (a INT)", Kind.DDL, ["t"]),
        ("CREATE TABLE IF NOT EXISTS ks.t (`from` INT, KEY (a))", Kind.DDL, ["ks.t"]),
        ("CREATE OR REPLACE TEMPORARY TABLE t LIKE u", Kind.DDL, ["t", "u"]),
        ("CREATE TABLE t (LIKE u)", Kind.DDL, ["t", "u"]),
        ("CREATE UNIQUE INDEX i ON ks.t (a)", Kind.DDL, ["ks.t"]),
        ("CREATE SPATIAL INDEX i ON ks.t (a)", Kind.DDL, ["ks.t"]),
        ("CREATE SPATIAL REFERENCE SYSTEM 4120 NAME 'a' DEFINITION 'b'", Kind.DDL, []),
        ("DROP INDEX i ON t", Kind.DDL, ["t"]),
        ("CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1", Kind.DDL, ["t"]),
        ("CREATE SQL SECURITY INVOKER VIEW v AS SELECT 1", Kind.DDL, ["v"]),
        ("ALTER TABLE t ADD COLUMN a INT", Kind.DDL, ["t"]),
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME TO u", Kind.DDL, ["t", "u"]),
        ("ALTER IGNORE TABLE t COMMENT 'vitess_message'", Kind.DDL, ["t"]),
        ("DROP TABLE IF EXISTS a, ks.b CASCADE", Kind.DDL, ["a", "ks.b"]),
        ("DROP TEMPORARY TABLE a", Kind.DDL, ["a"]),
        ("RENAME TABLE a TO b, ks.c TO ks.d", Kind.DDL, ["a", "b", "ks.c", "ks.d"]),
        ("TRUNCATE TABLE t", Kind.DDL, ["t"]),
        ("truncate ks.t", Kind.DDL, ["ks.t"]),
        ("CREATE USER 'a'@'b' IDENTIFIED BY 'c'", Kind.DDL, []),
        ("CREATE DEFINER=`a`@`b` PROCEDURE p() SELECT * FROM t", Kind.DDL, []),
        ("ALTER TABLE ks.t CHECK PARTITION p0, p1", Kind.OTHER, ["ks.t"]),
        ("ALTER TABLE t ANALYZE PARTITION ALL", Kind.OTHER, ["t"]),
        ("ALTER TABLE t DROP PARTITION p0", Kind.DDL, ["t"]),
    ],
)  # fmt: skip
def test_tables_that_definitions_name(sql, kind, expected):
    assert (shape(sql).kind, tables(sql)) == (kind, expected)


def test_dropping_if_exists_is_told():
    assert shape("DROP TABLE IF EXISTS t").options == {"IF EXISTS"}


def test_a_select_of_create_table_that_is_not_understood_is_unparsed():
    assert "UNPARSED" in uses("CREATE TABLE t SELECT * FROM {oj a JOIN b}")


def test_whether_a_trigger_is_of_the_current_database_is_known():
    body = "BEFORE INSERT ON d.t FOR EACH ROW SET @a = 1"
    assert "UNQUALIFIED" in shape(f"CREATE TRIGGER x {body}").options
    assert "UNQUALIFIED" in shape(f"CREATE OR REPLACE TRIGGER IF NOT EXISTS `x` {body}").options
    assert "UNQUALIFIED" not in shape(f"CREATE TRIGGER `d`.`x` {body}").options
