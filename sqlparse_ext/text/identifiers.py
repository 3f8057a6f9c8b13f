"""Names and values as SQL text, and the exchange of schema names inside a statement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.literal_values import Bits, Number
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.text.lexer import Edit, fingerprint, splice
from streamfrom.sqlparse_ext.text.tokens import tokenise, unquote


if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamfrom.sqlparse_ext.statements import Value
    from streamfrom.sqlparse_ext.text.tokens import Token

# A backslash reads differently under NO_BACKSLASH_ESCAPES, and control characters spoil logs.
_UNSAFE = re.compile(rb"[\x00-\x1f\\\x7f]")
# A name behind one of these is SHOW's schema, or its table.
_SCHEMA_FOLLOWS: Final = frozenset({"FROM", "IN", "DATABASE", "SCHEMA", "EXISTS"})
# Two names joined by a dot right behind one of these are schema and table.
_TABLE_FOLLOWS: Final = frozenset(
    {
        "FROM",
        "JOIN",
        "STRAIGHT_JOIN",
        "INTO",
        "UPDATE",
        "TABLE",
        "REFERENCES",
        "DESC",
        "DESCRIBE",
    }
)


def quote_identifier(name: str) -> str:
    """Return *name* in backticks."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: Value) -> bytes:
    """Return the SQL text of *value*; equal values give equal text under every sql_mode.

    Bytes that are UTF-8 become a character string, others x'..'.
    """
    if value is None:
        return b"NULL"
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, Number):
        return value.text.encode("ascii")
    if isinstance(value, Bits):
        return value.sql
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return b"x'" + value.hex().encode("ascii") + b"'"
    if _UNSAFE.search(value):
        return b"_utf8mb4 x'" + value.hex().encode("ascii") + b"'"
    return b"'" + value.replace(b"'", b"''") + b"'"


def requalify(
    sql: bytes, mapping: Mapping[str, str | None], mode: SqlMode = DEFAULT_MODE
) -> bytes:
    """Return *sql* with the schema names of *mapping* replaced; None drops the qualifier.

    A name counts as a schema where it qualifies another one. If the same name also stands alone
    in the statement it may be an alias, and `name.x` is then changed only in the place of a
    table and in `name.table.column`.
    """
    lowered = sql.lower()
    if not any(name.lower().encode("utf-8", "surrogateescape") in lowered for name in mapping):
        return sql
    template = fingerprint(sql, mode).template
    tokens = tokenise(template).tokens
    alone = {
        unquote(token, template)
        for place, token in enumerate(tokens)
        if token.is_name and "." not in (_key(tokens, place - 1), _key(tokens, place + 1))
    }
    edits = []
    for place, token in enumerate(tokens):
        if (
            not token.is_name
            or _key(tokens, place - 1) == "."
            or _key(tokens, place + 1) != "."
        ):
            continue
        name = unquote(token, template)
        if name not in mapping:
            continue
        is_sure = _key(tokens, place + 3) == "." or _key(tokens, place - 1) in _TABLE_FOLLOWS
        if is_sure or name not in alone:
            new = mapping[name]
            end = tokens[place + 2].start if new is None else token.end
            text = (
                b"" if new is None else quote_identifier(new).encode("utf-8", "surrogateescape")
            )
            edits.append(Edit(token.start, end, text))
    return splice(sql, mode, edits) if edits else sql


def redirect_show(sql: bytes, name: str, database: str, mode: SqlMode = DEFAULT_MODE) -> bytes:
    """Return a SHOW of schema *name* (`SHOW TABLES FROM name`) that names *database* instead."""
    template = fingerprint(sql, mode).template
    tokens = tokenise(template).tokens
    edits = [
        Edit(
            token.start,
            token.end,
            quote_identifier(database).encode("utf-8", "surrogateescape"),
        )
        for place, token in enumerate(tokens)
        if token.is_name
        and unquote(token, template) == name
        and _key(tokens, place - 1) in _SCHEMA_FOLLOWS
        and _key(tokens, place + 1) != "."
    ]
    # SHOW COLUMNS FROM t FROM t: the schema is the last one.
    return splice(sql, mode, edits[-1:])


def _key(tokens: list[Token], place: int) -> str:
    return tokens[place].key if 0 <= place < len(tokens) else ""
