"""The traces that a statement leaves in its session by SQL: prepared statements, and advisory locks.

`inline` puts values in place of functions that a server would answer for another connection: a backend connection
serves many clients, and its `CONNECTION_ID()` or `FOUND_ROWS()` may concern another one. A column that would be named
after the text of the call keeps that name. In a SELECT without tables it also keeps its type: `IF(TRUE, value, call)` has the type
of both. With tables the value is a literal, which can place a statement on a shard.

See https://dev.mysql.com/doc/refman/8.4/en/locking-functions.html.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from streamfrom.sqlparse_ext.reading.statement_features import unnamed_items
from streamfrom.sqlparse_ext.statements import Kind, Shape, Slot, Statement, Uses
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier
from streamfrom.sqlparse_ext.text.lexer import Edit, locate, splice
from streamfrom.sqlparse_ext.text.tokens import Cursor, Token, statement_tokens


class Step(Enum):
    """The step of a prepared statement's life."""

    PREPARE = "PREPARE"
    EXECUTE = "EXECUTE"
    IMMEDIATE = "EXECUTE IMMEDIATE"
    DEALLOCATE = "DEALLOCATE PREPARE"


@dataclass(frozen=True, slots=True)
class Dynamic:
    """A PREPARE, EXECUTE, EXECUTE IMMEDIATE or DEALLOCATE PREPARE."""

    step: Step
    # The name of the prepared statement, in lower case; "" for EXECUTE IMMEDIATE.
    name: str = ""
    # The SQL to prepare, as a literal or as a user variable; None without one.
    text: Slot | str | None = None
    using: tuple[str, ...] = ()  # the user variables of USING, as written


def takes_text(shape: Shape) -> bool:
    """Return whether a statement is PREPARE or EXECUTE IMMEDIATE: the SQL that it runs is a value."""
    return shape.kind is Kind.PREPARE and (
        shape.verb == "PREPARE" or shape.words[:1] == ("IMMEDIATE",)
    )


def dynamic(shape: Shape) -> Dynamic | None:
    """Return the contents of a statement of Kind.PREPARE; None if it cannot be read."""
    if shape.kind is not Kind.PREPARE:
        return None
    cursor = Cursor(statement_tokens(shape.template), shape.template)
    found = None
    if cursor.accept("PREPARE"):
        name = cursor.name()
        text = _text(cursor) if name and cursor.accept("FROM") else None
        found = Dynamic(Step.PREPARE, (name or "").lower(), text) if text is not None else None
    elif cursor.accept("EXECUTE", "IMMEDIATE"):
        text = _text(cursor)
        using = _using(cursor)
        if text is not None and using is not None:
            found = Dynamic(Step.IMMEDIATE, text=text, using=using)
    elif cursor.accept("EXECUTE"):
        name, using = cursor.name(), _using(cursor)
        if name and using is not None:
            found = Dynamic(Step.EXECUTE, name.lower(), using=using)
    elif cursor.accept_any({"DEALLOCATE", "DROP"}) and cursor.accept("PREPARE"):
        name = cursor.name()
        found = Dynamic(Step.DEALLOCATE, name.lower()) if name else None
    return None if cursor.key else found


def _text(cursor: Cursor) -> Slot | str | None:
    token = cursor.peek()
    if isinstance(token.slot, Slot):
        cursor.take()
        return token.slot
    return _variable(cursor)


def _using(cursor: Cursor) -> tuple[str, ...] | None:
    if not cursor.accept("USING"):
        return ()
    names = []
    while (name := _variable(cursor)) is not None:
        names.append(name)
        if not cursor.accept(","):
            return tuple(names)
    return None


def _variable(cursor: Cursor) -> str | None:
    token = cursor.peek()
    if not token.is_variable or token.key.startswith("@@"):
        return None
    cursor.take()
    return cursor.template[token.start : token.end].decode("utf-8", "surrogateescape")


# A literal that is the same under every sql_mode and in every character set.
_PLAIN: Final = re.compile(rb"'[^'\\\x80-\xff]*'|[0-9]+")


class LockCalls(NamedTuple):
    """The calls of GET_LOCK and RELEASE_ALL_LOCKS in a statement."""

    names: frozenset[bytes]  # the lock names that are plain literals, as written
    has_others: bool  # a GET_LOCK takes a name that is no plain literal
    releases_all: bool  # the statement releases all locks and takes none


def lock_calls(statement: Statement) -> LockCalls:
    """Return the calls in the text of *statement*."""
    if not statement.shape.uses & Uses.ADVISORY_LOCK:
        return LockCalls(frozenset(), has_others=False, releases_all=False)
    template = statement.shape.template
    cursor = Cursor(statement_tokens(template), template)
    names: set[bytes] = set()
    has_others = releases_all = False
    while key := cursor.take().key:
        if cursor.key != "(":
            continue
        releases_all |= key == "RELEASE_ALL_LOCKS"
        if key == "GET_LOCK":
            slot = cursor.peek(1).slot
            name = statement.raw(slot)[0] if isinstance(slot, Slot) else b""
            if _PLAIN.fullmatch(name) and cursor.peek(2).key == ",":
                names.add(name)
            else:
                has_others = True
    asks = bool(names) or has_others
    return LockCalls(frozenset(names), has_others, releases_all and not asks)


# After a dot comes a column or a function of a schema, after the others the table of an INSERT.
_NO_CALL_BEHIND: Final = frozenset(
    {".", "INTO", "INSERT", "REPLACE", "IGNORE", "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED"}
)
_LOCK_HOLDER: Final = "IS_USED_LOCK"
_GLOBAL: Final = frozenset({"SOCKET"})
_UNSIGNED: Final = frozenset({"CONNECTION_ID", "@@WARNING_COUNT", "@@ERROR_COUNT"})
# The only one of these functions that may be called without parentheses.
_BARE: Final = "CURRENT_USER"


def inline(
    statement: Statement,
    values: Mapping[str, bytes],
    holders: Mapping[int, int] = MappingProxyType({}),
) -> bytes:
    """Return the text with SQL in place of calls without arguments and of variables.

    values: the SQL text of each call or variable, by its name in upper case: `FOUND_ROWS`,
        `@@WARNING_COUNT`.
    holders: the connection id that `IS_USED_LOCK(…)` is to return, by the one that the server returns.
    """
    template = statement.shape.template
    tokens = statement_tokens(template)
    found = _places(tokens, values)
    if statement.shape.kind is Kind.SELECT and not statement.shape.tables:
        found = [(at, end, _typed(tokens[at], text)) for at, end, text in found]
    if holders:
        found = sorted([*found, *_lock_calls(statement, tokens, holders)])
    if not found:
        return statement.sql
    edits = {
        tokens[end - 1].end: Edit(tokens[at].start, tokens[end - 1].end, text)
        for at, end, text in (_apart(tokens, *place) for place in found)
    }
    unnamed = unnamed_items(tokens, [tokens[at].start for at, _, _ in found])
    texts = _texts(statement, unnamed)
    for (_, last), text in zip(unnamed, texts, strict=True):
        name = quote_identifier(text.decode("utf-8", "surrogateescape"))
        # The value may end where its name begins: one edit for both.
        own = edits.get(last, Edit(last, last, b""))
        named = own.text + b" AS " + name.encode("utf-8", "surrogateescape")
        edits[last] = own._replace(text=named)
    return splice(statement.sql, statement.mode, sorted(edits.values()))


def _typed(name: Token, value: bytes) -> bytes:
    key = _name(name)
    if key in _UNSIGNED:
        value = b"CAST(%b AS UNSIGNED)" % value
    elif value[:1] == b"'":
        value = b"_utf8mb4" + value  # the servers make it utf8mb3, like the call
    call = key.lower() if key[0] == "@" else f"{key}()"
    return b"IF(TRUE, %b, %b)" % (value, call.encode())


def _apart(tokens: list[Token], at: int, end: int, text: bytes) -> tuple[int, int, bytes]:
    """Put *text* into parentheses before a string, an alias, which would otherwise continue it."""
    is_before_string = end < len(tokens) and tokens[end].slot is not None and text[:1] == b"'"
    return at, end, b"(%b)" % text if is_before_string else text


def _texts(statement: Statement, ranges: list[tuple[int, int]]) -> list[bytes]:
    """Return the texts of the statement in *ranges* of its template."""
    template_places = sorted({place for pair in ranges for place in pair})
    places = locate(statement.sql, statement.mode, template_places)
    found = dict(zip(template_places, places, strict=True))
    return [statement.sql[found[begin] : found[stop]] for begin, stop in ranges]


def _places(tokens: list[Token], values: Mapping[str, bytes]) -> list[tuple[int, int, bytes]]:
    found = []
    for at, token in enumerate(tokens):
        key = _name(token)
        if key not in values or (at and tokens[at - 1].key in _NO_CALL_BEHIND):
            continue
        after = [following.key for following in tokens[at + 1 : at + 3]]
        if after == ["(", ")"]:
            found.append((at, at + 3, values[key]))
        elif key[0] == "@" or (key == _BARE and after[:1] != ["("]):
            found.append((at, at + 1, values[key]))
    return found


def _lock_calls(
    statement: Statement, tokens: list[Token], holders: Mapping[int, int]
) -> list[tuple[int, int, bytes]]:
    calls: list[tuple[int, int]] = []
    cursor = Cursor(tokens, statement.shape.template)
    while cursor.key:
        at = cursor.at
        # A call inside another one's parentheses is a part of that one's text.
        if cursor.take().key == _LOCK_HOLDER and cursor.key == "(":
            cursor.skip_parens()
            calls.append((at, cursor.at))
    texts = _texts(statement, [(tokens[at].start, tokens[end - 1].end) for at, end in calls])
    cases = b"".join(b" WHEN %d THEN %d" % pair for pair in holders.items())
    return [
        (at, end, b"CAST(CASE %s%s ELSE %s END AS UNSIGNED)" % (text, cases, text))
        for (at, end), text in zip(calls, texts, strict=True)
    ]


def _name(token: Token) -> str:
    key = token.key.upper()
    if key.startswith("@@"):
        scope, _, name = key.lstrip("@").rpartition(".")
        # Under the wrong scope it is the server's error 1238.
        if not scope or (scope == "GLOBAL") == (name in _GLOBAL):
            return "@@" + name
    return key
