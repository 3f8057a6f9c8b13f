"""Read the schemas in which a server describes its databases, with the clients' names for the databases.

A table of such a schema is read through a derived table in which the columns of databases' names hold keyspaces' names:
`(SELECT …, CASE TABLE_SCHEMA WHEN 'shop_db_1' THEN 'shop' ELSE TABLE_SCHEMA END AS TABLE_SCHEMA … FROM information_schema.TABLES)`.
So every expression on them sees those names, whatever its form, and the rows of hidden schemas are left out. The server merges the
derived table into the query, and still looks up a table by its name alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from streamfrom.sqlparse_ext.reading.database_names import TablePlace, database_names
from streamfrom.sqlparse_ext.statements import (
    Kind,
    ListSlot,
    Param,
    Shape,
    Slot,
    Statement,
    Uses,
)
from streamfrom.sqlparse_ext.text.identifiers import quoted, text_literal
from streamfrom.sqlparse_ext.text.lexer import Edit
from streamfrom.sqlparse_ext.text.tokens import Token, statement_tokens, unquote


# Schemas that every server has and that describe only itself.
SYSTEM_SCHEMAS: Final = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
# A row of information_schema describes objects in the schema that one of these columns names.
_OWNERS: Final = frozenset(
    {"table_schema", "schema_name", "constraint_schema", "routine_schema", "specific_schema"}
    | {"trigger_schema", "event_schema", "view_schema", "event_object_schema"}
)
_ASKS_DATABASE: Final = re.compile(rb"SELECT (?:DATABASE|SCHEMA)\(\)", re.IGNORECASE)
# Columns of databases' names; also those that end in _SCHEMA.
_NAMES_SCHEMA: Final = frozenset(
    {"SCHEMA_NAME", "DB", "DATABASE_NAME", "DATABASE", "OBJECT_SCHEMA"}
)
# SHOW statements with such a column, which their WHERE may use.
_SHOWS_SCHEMA: Final = frozenset(
    {("PROCEDURE", "STATUS"), ("FUNCTION", "STATUS"), ("PACKAGE", "STATUS"), ("OPEN", "TABLES")}
)
_COMPARES: Final = frozenset({"=", "<=>", "LIKE", "<>", "!=", "IN", "REGEXP", "RLIKE"})
# The endings of other columns' names: TABLE_NAME, ENGINE, USER.
_OTHERS: Final = ("NAME", "TYPE", "ENGINE", "USER", "HOST", "STATUS", "KEY", "EXTRA", "VERSION")
# No value after these is a name.
_COUNTS: Final = frozenset({"LIMIT", "OFFSET"})
# A hint that no server reads: the derived table is there already.
_IS_NAMED: Final = "schemas_named"


def asks_database(shape: Shape) -> bool:
    """Return whether a statement is just `SELECT DATABASE()` or `SCHEMA()`."""
    return _ASKS_DATABASE.fullmatch(shape.template) is not None


def describing(shape: Shape, database: str | None) -> list[TablePlace]:
    """Return the places of the tables of system schemas that the queries of a statement read.

    database: the current database, to which unqualified names belong.
    """
    return [] if _IS_NAMED in shape.directives else _described(shape, database)


def _described(shape: Shape, database: str | None) -> list[TablePlace]:
    return [
        table
        for table in database_names(shape).read
        if (table.schema or database or "").lower() in SYSTEM_SCHEMAS
    ]


def describes(shape: Shape, database: str | None) -> bool:
    """Return whether a statement reads a system schema, or SHOWs objects of several databases by a condition."""
    return (_shows(shape) and "WHERE" in shape.words) or bool(_described(shape, database))


def asks_by_parameter(shape: Shape, database: str | None) -> bool:
    """Return whether a parameter of a prepared statement may be a database's name."""
    return describes(shape, database) and any(
        isinstance(each, Param) for each in _operands(shape)
    )


def schemas_asked(statement: Statement, database: str | None) -> list[str]:
    """Return the texts in a statement that `describes`, each of which may be a database's name, without duplicates.

    A value that is compared with a column of other names is not included.
    """
    if not describes(statement.shape, database):
        return []
    literals = [each for each in _operands(statement.shape) if not isinstance(each, Param)]
    values = (value for each in literals for value in statement.values((each,)) or ())
    texts = (v.decode("utf-8", "surrogateescape") for v in values if isinstance(v, bytes))
    return list(dict.fromkeys(texts))


def shows_only_others(statement: Statement, hidden: str) -> bool:
    """Return whether a SELECT from one table has a plain condition that only allows rows of schemas other than *hidden*."""
    shape = statement.shape
    if shape.kind is not Kind.SELECT or shape.uses & Uses.SUBQUERY:
        return False
    # Servers compare without case and trailing spaces.
    return any(
        all(
            isinstance(value, bytes) and value.lower().rstrip() != hidden.encode()
            for value in statement.values(operands) or (None,)
        )
        for column, operands in shape.conditions.items()
        if column in _OWNERS
    )


def with_names(
    shape: Shape,
    database: str | None,
    names: Mapping[str, str],
    columns_of: Callable[[str, str], Sequence[str]],
    *,
    hidden: str,
    on_mariadb: bool,
) -> list[Edit]:
    """Return the edits of the template by which a statement reads *names* for databases, and no row of *hidden*.

    names: by the database's name on the server. A database whose own name is given to another is left out.
    columns_of: returns the columns of a system schema's table; none for a table that does not exist.
    """
    if _shows(shape):
        return _condition_edits(shape, names) if names else []
    edits = []
    replaced = set()
    tokens = statement_tokens(shape.template)
    words = {token.key for token in tokens}
    spelled = _spelled(tokens, shape.template)
    left_out = {hidden, *(names.values() - names.keys())}
    for table in describing(shape, database):
        schema = (table.schema or database or "").lower()
        columns = columns_of(schema, table.name)
        if any(_is_schema(column) for column in columns):
            is_view = schema == "sys" or (schema == "information_schema" and not on_mariadb)
            text = _derived(
                schema, table.name, columns, names, left_out, {} if is_view else spelled
            )
            if not on_mariadb and words >= {"GROUP", "HAVING"}:
                # In a table that MySQL merges, HAVING finds no column by which rows are grouped.
                text = text[:-1] + b" LIMIT 18446744073709551615)"
            alias = b"" if table.has_alias else b" AS " + quoted(table.name)
            edits.append(Edit(table.start, table.end, text + alias))
            replaced.add(schema)
    edits += [
        Edit(column.start, column.behind, b"")
        for column in database_names(shape).columns
        if column.name.lower() in replaced
    ]
    return edits


def _spelled(tokens: Sequence[Token], template: bytes) -> dict[str, str]:
    """Return the names between SELECT and FROM as the client spells them, by the name in upper case.

    Servers name a column of a table in an answer as the query spells it, and one of a view or derived table as that is defined.
    """
    found: dict[str, str] = {}
    is_list = False
    for token in tokens:
        if token.key in ("SELECT", "FROM"):
            is_list = token.key == "SELECT"
        elif is_list and token.is_name:
            name = unquote(token, template)
            found.setdefault(name.upper(), name)
    return found


def _derived(
    schema: str,
    table: str,
    columns: Sequence[str],
    names: Mapping[str, str],
    hidden: set[str],
    spelled: Mapping[str, str],
) -> bytes:
    shown = []
    for column in columns:
        read = quoted(column)
        value = _named(read, names) if _is_schema(column) else read
        name = quoted(spelled.get(column.upper(), column))
        shown.append(value if value == name else value + b" AS " + name)
    first = next(quoted(column) for column in columns if _is_schema(column))
    return b"(SELECT /*vt+ %b */ %b FROM %b.%b WHERE COALESCE(%b, '') NOT IN (%b))" % (
        _IS_NAMED.encode(),
        b", ".join(shown),
        quoted(schema),
        quoted(table),
        first,
        b", ".join(text_literal(name) for name in sorted(hidden)),
    )


def _condition_edits(shape: Shape, names: Mapping[str, str]) -> list[Edit]:
    tokens = statement_tokens(shape.template)
    keys = [token.key for token in tokens]
    behind = keys.index("WHERE") if "WHERE" in keys else len(keys)
    return [
        Edit(token.start, token.end, _named(shape.template[token.start : token.end], names))
        for token in tokens[behind:]
        if token.is_name and unquote(token, shape.template).upper() in _NAMES_SCHEMA
    ]


def _named(column: bytes, names: Mapping[str, str]) -> bytes:
    if not names:
        return column
    cases = b"".join(
        b" WHEN %b THEN %b" % (text_literal(name), text_literal(shown))
        for name, shown in names.items()
    )
    return b"(CASE %b%b ELSE %b END)" % (column, cases, column)


def _shows(shape: Shape) -> bool:
    return shape.kind is Kind.SHOW and (
        shape.words[:2] in _SHOWS_SCHEMA or shape.words[:1] == ("EVENTS",)
    )


def _is_schema(column: str) -> bool:
    upper = column.upper()
    return upper in _NAMES_SCHEMA or upper.endswith("_SCHEMA")


def _operands(shape: Shape) -> list[Slot | ListSlot | Param]:
    """Return the values of a statement that may be names of databases."""
    tokens = statement_tokens(shape.template)
    found = []
    before = -1  # the last token that is neither a value nor a comma
    for place, token in enumerate(tokens):
        if token.slot is None:
            before = before if token.key == "," else place
        elif tokens[before].key not in _COUNTS and not _is_of_another_column(
            tokens, before, shape.template, is_listed=before != place - 1
        ):
            found.append(token.slot)
    return found


def _is_of_another_column(
    tokens: list[Token], at: int, template: bytes, *, is_listed: bool
) -> bool:
    """Return whether the value after *at* is compared with a column that holds no databases' names."""
    if at > 0 and tokens[at].key == "(" and tokens[at - 1].key == "IN":
        at -= 1
    elif is_listed:
        return False
    if at > 0 and tokens[at].key in _COMPARES:
        at -= 1
        if at > 0 and tokens[at].key == "NOT":
            at -= 1
        name = unquote(tokens[at], template).upper()
        return tokens[at].is_name and name.endswith(_OTHERS) and not _is_schema(name)
    return False
