"""System schemas, read with the names that clients have for databases."""

import ast
from functools import partial

from streamfrom.sqlparse_ext.session.information_schema import (
    asks_by_parameter,
    describes,
    schemas_asked,
    shows_only_others,
    with_names,
)
from streamfrom.sqlparse_ext.text.lexer import splice
from tests.cases import cases
from tests.growth import is_linear
from tests.sqlparse_ext.facts import statement


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


def edits_of(found, database=None, names=None, *, on_mariadb=False):
    return with_names(
        found.shape,
        database,
        {"a": "x"} if names is None else names,
        lambda *key: KNOWN.get(key, ()),
        hidden="own",
        on_mariadb=on_mariadb,
    )


def named(sql, database=None, names=None, *, on_mariadb=False):
    found = statement(sql)
    edits = edits_of(found, database, names, on_mariadb=on_mariadb)
    return splice(found.sql, found.mode, edits).decode()


@cases(sql=str, expected=str)
def test_a_table_is_read_through_a_derived_one(sql, expected):
    assert named(sql) == (sql if expected is None else expected)


def test_work_grows_with_the_tables_and_no_faster():
    def prepare(size):
        tables = ", ".join(f"information_schema.t t{place}" for place in range(size))
        return partial(edits_of, statement(f"SELECT 1 FROM {tables}"), on_mariadb=True)

    assert is_linear(prepare, 30, 600)


def test_what_is_derived_is_not_derived_again():
    once = named("SELECT 1 FROM information_schema.t")
    assert named(once) == once


def test_tables_of_users_may_have_such_columns():
    assert named("SELECT 1 FROM t") == "SELECT 1 FROM t"
    assert named("SELECT 1 FROM t", "information_schema") == f"SELECT 1 FROM {DERIVED} AS `t`"
    assert not describes(statement("SELECT 1 FROM tables WHERE TABLE_SCHEMA = 'a'").shape, "a")


def test_a_schema_is_hidden_where_no_name_is_another_one_or_two_are_each_others():
    sql = "SELECT 1 FROM information_schema.t"
    assert "NOT IN ('own')" in named(sql, names={"a": "b", "b": "a"})
    assert named(sql, names={}) == (
        "SELECT 1 FROM (SELECT /*vt+ schemas_named */ `TABLE_SCHEMA`, `TABLE_NAME`"
        " FROM `information_schema`.`t` WHERE COALESCE(`TABLE_SCHEMA`, '') NOT IN ('own')) AS `t`"
    )
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


@cases(where=str, expected=ast.literal_eval)
def test_conditions_that_allow_no_row_of_a_hidden_schema(where, expected):
    assert shows_only_others(statement(f"{COLUMNS}WHERE {where}"), "own") is expected


@cases(where=str, texts=ast.literal_eval)
def test_the_texts_that_may_be_databases_names(where, texts):
    assert schemas_asked(statement(f"{COLUMNS}WHERE {where}"), None) == texts


def test_a_parameter_may_be_a_name_with_each_execution():
    found = statement(COLUMNS + "WHERE TABLE_SCHEMA = ? AND TABLE_NAME = 'a'")
    assert asks_by_parameter(found.shape, None)
    assert schemas_asked(found, None) == []
    other = statement(COLUMNS + "WHERE TABLE_NAME = ? LIMIT ?")
    assert not asks_by_parameter(other.shape, None)
