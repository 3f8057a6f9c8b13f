"""Which schemas a query on information_schema asks for, and the text that asks for others."""

import pytest

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.session.information_schema import (
    asks_by_parameter,
    asks_for_schemas,
    rename_schemas,
    schemas_asked,
)


CACHE = StatementCache()
COLUMNS = "SELECT COLUMN_NAME FROM information_schema.COLUMNS "


def statement(sql):
    return CACHE.get(sql.encode())


@pytest.mark.parametrize(
    ("where", "names", "renamed"),
    [
        ("WHERE TABLE_SCHEMA='a' AND TABLE_NAME='a'", ["a"], "WHERE TABLE_SCHEMA='x' AND TABLE_NAME='a'"),
        ("WHERE c.`table_schema` LIKE 'a'", ["a"], "WHERE c.`table_schema` LIKE 'x'"),
        ("WHERE 'a' = c.TABLE_SCHEMA", ["a"], "WHERE 'x' = c.TABLE_SCHEMA"),
        ("WHERE TABLE_SCHEMA <=> _utf8mb4'a'", ["a"], "WHERE TABLE_SCHEMA <=> 'x'"),
        ("WHERE TABLE_SCHEMA IN ('b', 'a')", ["b", "a"], "WHERE TABLE_SCHEMA IN ('b', 'x')"),
        ("WHERE TABLE_SCHEMA IN ('a')", ["a"], "WHERE TABLE_SCHEMA IN ('x')"),
        (
            "WHERE (TABLE_SCHEMA = 'a' AND TABLE_NAME = 't') OR (TABLE_SCHEMA = 'it''s')",
            ["a", "it's"],
            "WHERE (TABLE_SCHEMA = 'x' AND TABLE_NAME = 't') OR (TABLE_SCHEMA = 'it''s')",
        ),
        ("WHERE TABLE_SCHEMA = DATABASE()", [], None),
        ("WHERE TABLE_SCHEMA <> 'a'", [], None),
        ("WHERE TABLE_SCHEMA NOT IN ('a')", [], None),
        ("WHERE TABLE_NAME = 'a'", [], None),
        ("WHERE TABLE_SCHEMA =", [], None),
    ],
)  # fmt: skip
def test_a_schema_is_found_where_it_is_compared_and_nowhere_else(where, names, renamed):
    found = statement(COLUMNS + where)
    assert schemas_asked(found, None) == names
    assert asks_for_schemas(found.shape, None) is bool(names)
    expected = COLUMNS + (where if renamed is None else renamed)
    assert rename_schemas(found, {"a": "x"}, None) == expected.encode()


def test_tables_of_users_may_have_such_columns():
    found = statement("SELECT 1 FROM tables WHERE TABLE_SCHEMA = 'a'")
    assert schemas_asked(found, None) == []
    assert schemas_asked(found, "plain") == []
    assert schemas_asked(found, "information_schema") == ["a"]


@pytest.mark.parametrize("kind", ["FUNCTION", "PROCEDURE"])
def test_show_status_asks_for_the_routines_of_a_schema(kind):
    found = statement(f"SHOW {kind} STATUS WHERE Db = 'a' AND Name = 'a'")
    assert schemas_asked(found, None) == ["a"]
    expected = f"SHOW {kind} STATUS WHERE Db = 'x' AND Name = 'a'"
    assert rename_schemas(found, {"a": "x"}, None) == expected.encode()
    assert schemas_asked(statement("SHOW TABLE STATUS WHERE Db = 'a'"), None) == []


def test_a_parameter_names_a_schema_with_each_execution():
    found = statement(COLUMNS + "WHERE TABLE_SCHEMA = ? AND TABLE_NAME = 'a'")
    assert asks_by_parameter(found.shape, None)
    assert schemas_asked(found, None) == []
    assert not asks_by_parameter(statement(COLUMNS + "WHERE TABLE_NAME = ?").shape, None)
