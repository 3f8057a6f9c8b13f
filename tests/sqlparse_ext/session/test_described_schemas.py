"""Which schemas a query on information_schema can show, as far as its conditions say."""

import ast

from streamfrom.sqlparse_ext.session.described_schemas import SCHEMA_COLUMNS, described
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


I_S = "information_schema."


def found(sql: str) -> set[bytes] | None:
    names = described(statement(sql.replace("FROM ", f"FROM {I_S}", 1)), SCHEMA_COLUMNS)
    return None if names is None else set(names)


@cases(sql=str, names=ast.literal_eval)
def test_what_is_narrowed(sql, names):
    assert found(sql) == names
