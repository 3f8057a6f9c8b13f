"""Statements that define something: the tables that they name."""

import pytest

from streamfrom.sqlparse_ext.statements import Kind
from tests.sqlparse_ext.facts import shape, tables, uses


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
