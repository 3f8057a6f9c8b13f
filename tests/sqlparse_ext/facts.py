"""Short ways to ask for the facts of a text."""

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.literal_values import Number, decode_literal
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.statements import Shape, Statement, Uses, Value


def statement(sql: str | bytes, mode: SqlMode = DEFAULT_MODE) -> Statement:
    return StatementCache().get(sql.encode() if isinstance(sql, str) else sql, mode)


def shape(sql: str | bytes, mode: SqlMode = DEFAULT_MODE) -> Shape:
    return statement(sql, mode).shape


def value(text: str) -> int | bytes | Number:
    """Return what a literal is worth: `5`, `1.50`, `'a'`, `x'00'`."""
    return decode_literal(text.encode(), DEFAULT_MODE)


def tables(sql: str) -> list[str]:
    """Return the tables as `schema.name alias`."""
    return [
        (f"{table.schema}." if table.schema else "")
        + table.name
        + (f" {table.alias}" if table.alias else "")
        for table in shape(sql).tables
    ]


def conditions(sql: str | bytes, mode: SqlMode = DEFAULT_MODE) -> dict[str, list[Value] | None]:
    """Return the values that bound each column."""
    found = statement(sql, mode)
    return {
        column: found.values(operands) for column, operands in found.shape.conditions.items()
    }


def uses(sql: str) -> set[str]:
    flags = shape(sql).uses
    return {str(flag.name) for flag in Uses if flag in flags}
