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
from tests.cases import cases
from tests.sqlparse_ext.facts import shape, statement, tables


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
