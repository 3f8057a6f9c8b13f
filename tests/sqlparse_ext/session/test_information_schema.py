"""System schemas, read with the names that clients have for databases."""

import pytest

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.session.information_schema import (
    asks_by_parameter,
    describes,
    schemas_asked,
    shows_only_others,
    with_names,
)
from streamfrom.sqlparse_ext.text.lexer import splice


CACHE = StatementCache()
COLUMNS = "SELECT COLUMN_NAME FROM information_schema.COLUMNS "
KNOWN = {
    ("information_schema", "t"): ("TABLE_SCHEMA", "TABLE_NAME"),
    ("mysql", "x"): ("id",),
    ("sys", "t"): ("table_schema",),
}
CASE = "(CASE `TABLE_SCHEMA` WHEN 'a' THEN 'x' ELSE `TABLE_SCHEMA` END) AS `TABLE_SCHEMA`"
DERIVED = (
    f"(SELECT /*vt+ schemas_named */ {CASE}, `TABLE_NAME` FROM `information_schema`.`t`"
    " WHERE COALESCE(`TABLE_SCHEMA`, '') NOT IN ('own', 'x'))"
)


def statement(sql):
    return CACHE.get(sql.encode())


def named(sql, database=None, names=None, *, on_mariadb=False):
    found = statement(sql)
    edits = with_names(
        found.shape,
        database,
        {"a": "x"} if names is None else names,
        lambda *key: KNOWN.get(key, ()),
        hidden="own",
        on_mariadb=on_mariadb,
    )
    return splice(found.sql, found.mode, edits).decode()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1 FROM information_schema.t", f"SELECT 1 FROM {DERIVED} AS `t`"),
        ("SELECT 1 FROM INFORMATION_SCHEMA.`t` AS i", f"SELECT 1 FROM {DERIVED} AS i"),
        (
            "SELECT information_schema.t.TABLE_NAME FROM (SELECT 1) u, information_schema.t",
            f"SELECT t.TABLE_NAME FROM (SELECT 1) u, {DERIVED} AS `t`",
        ),
        (
            "SELECT Information_Schema.t.TABLE_NAME FROM information_schema.t",
            f"SELECT t.TABLE_NAME FROM {DERIVED} AS `t`",
        ),
        (
            "DELETE FROM q WHERE EXISTS (SELECT 1 FROM information_schema.t i)",
            f"DELETE FROM q WHERE EXISTS (SELECT 1 FROM {DERIVED} i)",
        ),
        (
            "SHOW FUNCTION STATUS WHERE LOWER(Db) = 'x' AND Name = 'Db'",
            "SHOW FUNCTION STATUS WHERE LOWER((CASE Db WHEN 'a' THEN 'x' ELSE Db END)) = 'x' AND Name = 'Db'",
        ),
        ("SELECT 1 FROM mysql.x, information_schema.nothing, u.t", None),
        ("SHOW FUNCTION STATUS LIKE 'x'", None),
        ("DELETE FROM information_schema.t", None),
    ],
)  # fmt: skip
def test_a_table_is_read_through_a_derived_one(sql, expected):
    assert named(sql) == (sql if expected is None else expected)


def test_what_is_derived_is_not_derived_again():
    once = named("SELECT 1 FROM information_schema.t")
    assert named(once) == once


def test_tables_of_users_may_have_such_columns():
    assert named("SELECT 1 FROM t") == "SELECT 1 FROM t"
    assert named("SELECT 1 FROM t", "information_schema") == f"SELECT 1 FROM {DERIVED} AS `t`"
    assert not describes(statement("SELECT 1 FROM tables WHERE TABLE_SCHEMA = 'a'").shape, "a")


def test_two_databases_may_have_each_others_names():
    assert "NOT IN ('own')" in named(
        "SELECT 1 FROM information_schema.t", names={"a": "b", "b": "a"}
    )


def test_a_schema_is_hidden_where_no_name_is_another_one():
    derived = (
        "(SELECT /*vt+ schemas_named */ `TABLE_SCHEMA`, `TABLE_NAME` FROM `information_schema`.`t`"
        " WHERE COALESCE(`TABLE_SCHEMA`, '') NOT IN ('own')) AS `t`"
    )
    assert named("SELECT 1 FROM information_schema.t", names={}) == f"SELECT 1 FROM {derived}"
    show = "SHOW FUNCTION STATUS WHERE Db = 'x'"
    assert named(show, names={}) == show


def test_columns_of_tables_are_called_as_the_query_spells_them():
    sql = "SELECT table_name, 1 FROM information_schema.t WHERE table_schema LIKE 'x'"
    assert "`TABLE_SCHEMA`, `TABLE_NAME` AS `table_name` FROM" in named(
        sql, names={}, on_mariadb=True
    )
    assert "`TABLE_SCHEMA`, `TABLE_NAME` FROM" in named(sql, names={})
    view = "SELECT TABLE_SCHEMA FROM sys.t"
    assert "`table_schema` FROM" in named(view, names={}, on_mariadb=True)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("TABLE_SCHEMA = 'a' AND TABLE_NAME LIKE 'b'", True),
        ("TABLE_SCHEMA IN ('a', 'b')", True),
        ("TABLE_SCHEMA = DATABASE()", True),
        ("TABLE_SCHEMA IN ('a', 'Own ')", False),
        ("TABLE_SCHEMA = 'a' OR TABLE_NAME = 'b'", False),
        ("TABLE_SCHEMA <> 'a'", False),
        ("TABLE_SCHEMA = ?", False),
        ("TABLE_NAME = 'a'", False),
    ],
)
def test_conditions_that_allow_no_row_of_a_hidden_schema(where, expected):
    assert shows_only_others(statement(f"{COLUMNS}WHERE {where}"), "own") is expected


@pytest.mark.parametrize(
    ("where", "texts"),
    [
        ("TABLE_SCHEMA = 'a' AND TABLE_NAME = 'b'", ["a"]),
        ("c.`table_schema` COLLATE utf8_bin = 'a'", ["a"]),
        ("'a' = c.TABLE_SCHEMA", ["a"]),
        ("TABLE_SCHEMA IN ('b', 'a') AND TABLE_TYPE IN ('c', 'd')", ["b", "a"]),
        ("(TABLE_SCHEMA, TABLE_NAME) IN (('a', 't'))", ["a", "t"]),
        ("TABLE_SCHEMA = IFNULL('a', DATABASE()) LIMIT 5", ["a"]),
        ("CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) = 'a.t'", [".", "a.t"]),
        ("TABLE_NAME NOT LIKE 'a'", []),
    ],
)
def test_the_texts_that_may_be_databases_names(where, texts):
    assert schemas_asked(statement(f"{COLUMNS}WHERE {where}"), None) == texts


def test_a_parameter_may_be_a_name_with_each_execution():
    found = statement(COLUMNS + "WHERE TABLE_SCHEMA = ? AND TABLE_NAME = 'a'")
    assert asks_by_parameter(found.shape, None)
    assert schemas_asked(found, None) == []
    other = statement(COLUMNS + "WHERE TABLE_NAME = ? LIMIT ?")
    assert not asks_by_parameter(other.shape, None)
