"""The schemas that a query asks `information_schema` about by name: `WHERE TABLE_SCHEMA = 'commerce'`.

So does `SHOW FUNCTION STATUS WHERE Db = 'commerce'`.
Found where a column of a schema's name is compared with literals or `?`s for being equal: by `=`,
`<=>`, `LIKE` or `IN`. What is said in any other way is not seen, and means what the server says.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.sqlparse_ext.statements import Kind, ListSlot, Param, Slot
from streamfrom.sqlparse_ext.text.identifiers import literal
from streamfrom.sqlparse_ext.text.lexer import Edit, splice
from streamfrom.sqlparse_ext.text.tokens import statement_tokens, unquote


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamfrom.sqlparse_ext.statements import Shape, Statement, Value
    from streamfrom.sqlparse_ext.text.tokens import Token


# Schemas that every server has and that describe only itself.
SYSTEM_SCHEMAS: Final = frozenset({"information_schema", "mysql", "performance_schema", "sys"})

_ASKS_DATABASE: Final = re.compile(rb"SELECT (?:DATABASE|SCHEMA)\(\)", re.IGNORECASE)
_NAMES_SCHEMA: Final = frozenset(
    {
        "SCHEMA_NAME", "TABLE_SCHEMA", "CONSTRAINT_SCHEMA", "UNIQUE_CONSTRAINT_SCHEMA", "INDEX_SCHEMA",
        "REFERENCED_TABLE_SCHEMA", "ROUTINE_SCHEMA", "SPECIFIC_SCHEMA", "EVENT_SCHEMA", "TRIGGER_SCHEMA",
        "EVENT_OBJECT_SCHEMA", "OBJECT_SCHEMA", "VIEW_SCHEMA",
    }
)  # fmt: skip
# What dumps ask: SHOW FUNCTION STATUS WHERE Db = 'commerce'.
_SHOWS_OF_SCHEMAS: Final = (("FUNCTION", "STATUS"), ("PROCEDURE", "STATUS"))
_SHOWS_SCHEMA: Final = frozenset({"DB"})
_EQUALS: Final = frozenset({"=", "<=>"})
_COMPARES: Final = _EQUALS | {"LIKE"}
_LIST_ENDS: Final = frozenset({")", "("})


class _Asked(NamedTuple):
    start: int
    end: int
    operand: Slot | ListSlot | Param


def asks_database(shape: Shape) -> bool:
    """True for `SELECT DATABASE()` or `SCHEMA()` and nothing else."""
    return _ASKS_DATABASE.fullmatch(shape.template) is not None


def asks_for_schemas(shape: Shape, database: str | None) -> bool:
    """True for a query on a system schema that compares a schema's name with values.

    database: the current database, to which unqualified names belong.
    """
    return bool(_asked(shape, database))


def asks_by_parameter(shape: Shape, database: str | None) -> bool:
    """True when a parameter of a prepared statement is compared with a schema's name."""
    return any(isinstance(each.operand, Param) for each in _asked(shape, database))


def schemas_asked(statement: Statement, database: str | None) -> list[str]:
    """Return the schema names that a query asks for, in the order of the text, each once."""
    names = dict.fromkeys(
        value.decode("utf-8", "surrogateescape")
        for each in _asked(statement.shape, database)
        for value in _values(statement, each)
        if isinstance(value, bytes)
    )
    return list(names)


def rename_schemas(
    statement: Statement, names: Mapping[str, str], database: str | None
) -> bytes:
    """Return the text with each schema name replaced as *names* says."""
    spelled = {
        old.encode("utf-8", "surrogateescape"): new.encode("utf-8", "surrogateescape")
        for old, new in names.items()
    }
    edits = []
    for each in _asked(statement.shape, database):
        values = _values(statement, each)
        if any(value in spelled for value in values if isinstance(value, bytes)):
            renamed = (spelled.get(v, v) if isinstance(v, bytes) else v for v in values)
            edits.append(Edit(each.start, each.end, b", ".join(map(literal, renamed))))
    return splice(statement.sql, statement.mode, edits) if edits else statement.sql


def _values(statement: Statement, asked: _Asked) -> list[Value]:
    # A `?` has a value only when it is bound, and then the text already has it.
    if isinstance(asked.operand, Param):
        return []
    return statement.values((asked.operand,)) or []


def _asked(shape: Shape, database: str | None) -> list[_Asked]:
    if shape.kind is Kind.SHOW:
        columns = _SHOWS_SCHEMA if shape.words[:2] in _SHOWS_OF_SCHEMAS else frozenset[str]()
    elif shape.kind is Kind.SELECT and any(
        (table.schema or database or "").lower() in SYSTEM_SCHEMAS for table in shape.tables
    ):
        columns = _NAMES_SCHEMA
    else:
        columns = frozenset()
    if not columns:
        return []
    tokens = statement_tokens(shape.template)
    return [
        _Asked(token.start, token.end, token.slot)
        for place, column in enumerate(tokens)
        if column.is_name and unquote(column, shape.template).upper() in columns
        for token in _compared(tokens, place)
        if token.slot is not None
    ]


def _compared(tokens: list[Token], place: int) -> Iterator[Token]:
    """Yield what the column at *place* is compared with."""
    after = [token.key for token in tokens[place + 1 : place + 3]]
    if after[:1] and after[0] in _COMPARES:
        yield from tokens[place + 2 : place + 3]
    elif after == ["IN", "("]:
        for at in range(place + 3, len(tokens)):
            # An IN that opens before the other one is closed is no list of values.
            if tokens[at].key in _LIST_ENDS:
                break
            yield tokens[at]
    first = place - 2 if place and tokens[place - 1].key == "." else place
    if first > 1 and tokens[first - 1].key in _EQUALS:
        yield tokens[first - 2]
