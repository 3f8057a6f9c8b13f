"""Which schemas a query on information_schema can show, as far as its conditions say."""

import pytest

from streamfrom.sqlparse_ext.session.described_schemas import (
    SCHEMA_COLUMNS,
    described,
)
from tests.sqlparse_ext.facts import statement


I_S = "information_schema."


def found(sql: str) -> set[bytes] | None:
    names = described(statement(sql.replace("FROM ", f"FROM {I_S}", 1)), SCHEMA_COLUMNS)
    return None if names is None else set(names)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM tables WHERE table_schema = 'a'", {b"a"}),
        ("SELECT * FROM tables WHERE table_schema = DATABASE() AND n = 1", {b""}),
        ("SELECT * FROM `TABLES` t WHERE x = 1 AND t.table_schema = SCHEMA()", {b""}),
        ("SELECT * FROM columns WHERE table_schema IN ('a', 'b') ORDER BY 1", {b"a", b"b"}),
        ("SELECT * FROM columns WHERE (table_schema = 'a' AND table_name = 't')", {b"a"}),
        ("SELECT * FROM columns WHERE table_schema = ?", {b"?"}),
        ("SELECT * FROM schemata WHERE schema_name = 'a'", {b"a"}),
        ("SELECT * FROM collations", set()),
        (
            "SELECT * FROM key_column_usage k JOIN information_schema.referential_constraints r"
            " ON r.constraint_schema = k.constraint_schema WHERE k.table_schema = DATABASE()",
            {b""},
        ),
        (
            "SELECT * FROM tables a LEFT JOIN information_schema.columns b"
            " ON (b.table_schema = a.table_schema AND b.x = 1) WHERE a.table_schema = 'a'",
            {b"a"},
        ),
    ],
)
def test_what_is_narrowed(sql, names):
    assert found(sql) == names


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM tables",
        "SELECT * FROM tables WHERE table_schema <> 'a'",
        "SELECT * FROM tables WHERE table_schema = 'a' OR 1",
        "SELECT * FROM tables WHERE table_schema = 'a' || 1",
        "SELECT * FROM tables WHERE NOT table_schema = 'a'",
        "SELECT * FROM tables WHERE 1 BETWEEN 0 AND table_schema = 'a'",
        "SELECT * FROM tables WHERE CASE WHEN 1 AND table_schema = 'a' THEN 1 ELSE 1 END",
        "SELECT * FROM tables WHERE table_schema = 'a' = 0",
        "SELECT * FROM tables WHERE table_schema = 'a' IS FALSE",
        "SELECT * FROM tables WHERE table_schema LIKE '%'",
        "SELECT * FROM tables WHERE table_schema = (SELECT 'b')",
        "SELECT * FROM tables WHERE @a := 1 AND table_schema = 'a'",
        "SELECT * FROM tables WHERE table_schema = 'a' UNION SELECT * FROM tables",
        "SELECT * FROM tables a, information_schema.tables b WHERE a.table_schema = 'a'",
        "SELECT * FROM tables a LEFT JOIN information_schema.tables b"
        " ON a.table_schema = 'a' AND b.table_schema = 'a'",
        "SELECT * FROM key_column_usage WHERE referenced_table_schema = 'a'",
        "SELECT * FROM processlist",
        "SELECT * FROM innodb_tables WHERE name = 'a'",
        "SELECT * FROM tables HAVING table_schema = 'a'",
    ],
)
def test_what_is_not_narrowed(sql):
    assert found(sql) is None
