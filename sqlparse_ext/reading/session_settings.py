"""Read SET: https://dev.mysql.com/doc/refman/8.4/en/set-variable.html."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.reading.conditions import read_operand
from streamfrom.sqlparse_ext.statements import (
    OPAQUE,
    Kind,
    SetItem,
    SetKind,
    SetScope,
    Slot,
    Uses,
)
from streamfrom.sqlparse_ext.text.lexer import Edit, locate, splice
from streamfrom.sqlparse_ext.text.tokens import Cursor, split_commas, statement_tokens, unquote


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Opaque, Shape, Statement

_SCOPES: Final = {
    "SESSION": SetScope.SESSION,
    "LOCAL": SetScope.SESSION,
    **dict.fromkeys(("GLOBAL", "PERSIST", "PERSIST_ONLY"), SetScope.GLOBAL),
}
# The modes of transactions. As `@@name` they apply only to the next transaction; a session's apply from the next one on.
TRANSACTION_VARIABLES: Final = frozenset(
    {"transaction_isolation", "tx_isolation", "transaction_read_only", "tx_read_only"}
)
# These forms take the whole statement, with its commas.
_WHOLE: Final = frozenset({"PASSWORD", "ROLE", "DEFAULT", "RESOURCE", "STATEMENT"})


def read_set(shape: Shape, cursor: Cursor) -> None:
    """Read SET after its verb."""
    shape.kind = Kind.SET
    if (
        cursor.key in _WHOLE
        and cursor.peek(1).key not in (".", ":=")
        and (cursor.peek(1).key != "=" or cursor.key == "PASSWORD")
    ):
        name = cursor.take().key.lower()
        shape.set = (SetItem(SetKind.OTHER, SetScope.SESSION, name, OPAQUE),)
        if name == "statement":  # SET STATEMENT x = y FOR <any statement>
            shape.uses |= Uses.UNPARSED
        elif name == "password":
            shape.uses |= Uses.IMPLICIT_COMMIT
        return
    items: list[SetItem] = []
    scope: SetScope | None = None
    transaction = False
    for start, end in split_commas(cursor.tokens, cursor.at, len(cursor.tokens)):
        item = Cursor(cursor.tokens, cursor.template, start, end)
        if item.key in _SCOPES and item.peek(1).key not in ("=", ":="):
            scope = _SCOPES[item.take().key]
        if item.accept("TRANSACTION") or transaction:
            transaction = True
            items.append(_characteristic(item, scope or SetScope.NEXT))
        else:
            items.append(_item(item, scope or SetScope.SESSION))
    shape.set = tuple(items)
    for each in items:
        if each.scope is SetScope.GLOBAL:
            shape.uses |= Uses.GLOBAL_SCOPE
        if each.name.startswith("session_track_"):
            shape.uses |= Uses.TRACKER_SETTING
        if each.kind is SetKind.OTHER:
            shape.uses |= Uses.UNPARSED


def split_set_statement(statement: Statement) -> tuple[bytes, bytes] | None:
    """Return `SET STATEMENT … FOR` and the statement after it; None for anything else."""
    shape = statement.shape
    if len(shape.set) != 1 or shape.set[0].name != "statement":
        return None
    cursor = Cursor(statement_tokens(shape.template), shape.template)
    cursor.at = cursor.find({"FOR"})
    if cursor.key != "FOR":
        return None
    (end,) = locate(statement.sql, statement.mode, (cursor.take().end,))
    return statement.sql[:end], statement.sql[end:]


def passing_variables(shape: Shape) -> frozenset[str]:
    """Return the variables that SET STATEMENT sets for its statement only, in lower case; none for other statements."""
    if [item.name for item in shape.set] != ["statement"]:
        return frozenset()
    tokens = statement_tokens(shape.template)
    ends = [place for place, token in enumerate(tokens) if token.key == "FOR"]
    names = (token for token in tokens[: max(ends, default=0)] if token.is_name)
    return frozenset(unquote(token, shape.template).lower() for token in names)


def with_session_scope(statement: Statement) -> bytes:
    """Return a SET's text with `@@session.name` for each assignment to `@@name`.

    They are the same, but MariaDB's session tracker reports only the first (`sys_var::update`).
    `@@tx_isolation` and similar ones stay: without a scope they mean the next transaction.
    """
    template = statement.shape.template
    if b"@@" not in template:
        return statement.sql
    tokens = statement_tokens(template)
    items = zip(split_commas(tokens, 1, len(tokens)), statement.shape.set, strict=False)
    edits = [
        Edit(tokens[start].start + 2, tokens[start].start + 2, b"session.")
        for (start, end), item in items
        if start < end
        and item.kind is SetKind.SYSTEM
        and item.scope is SetScope.SESSION
        and tokens[start].key.startswith("@@")
        and "." not in tokens[start].key + item.name
    ]
    return splice(statement.sql, statement.mode, edits) if edits else statement.sql


def _characteristic(item: Cursor, scope: SetScope) -> SetItem:
    name = "isolation level" if item.accept("ISOLATION", "LEVEL") else "access mode"
    words = " ".join(token.key for token in item.tokens[item.at : item.end])
    return SetItem(SetKind.TRANSACTION, scope, name, words)


def _item(item: Cursor, scope: SetScope) -> SetItem:
    if item.key == "NAMES" and item.peek(1).key not in ("=", ":="):
        item.take()
        return _character_set(item, SetKind.NAMES, "names")
    if item.accept("CHARACTER", "SET") or (
        item.key == "CHARSET" and item.peek(1).key not in ("=", ":=") and item.take()
    ):
        return _character_set(item, SetKind.CHARACTER_SET, "character set")
    token = item.take()
    kind = SetKind.SYSTEM
    name = unquote(token, item.template).lower()
    if token.key.startswith("@@"):
        name = token.key[2:].lower()
        scope_word, dot, rest = name.partition(".")
        if dot and scope_word.upper() in _SCOPES:
            name = rest
            scope = _SCOPES[scope_word.upper()]
        else:
            scope = SetScope.NEXT if name in TRANSACTION_VARIABLES else SetScope.SESSION
    elif token.is_variable:
        kind, scope = SetKind.USER, SetScope.SESSION
    elif not token.is_name:
        return SetItem(SetKind.OTHER, scope, "", OPAQUE)
    while item.accept("."):  # a key cache's variable, or NEW.column in a trigger
        name += "." + unquote(item.take(), item.template).lower()
    if not item.accept_any({"=", ":="}):
        return SetItem(SetKind.OTHER, scope, name, OPAQUE)
    return SetItem(kind, scope, name, _value(item))


def _value(item: Cursor) -> Slot | str | Opaque | None:
    """Read the rest: a literal, a bare word, NULL, or an expression."""
    token = item.peek()
    if item.end - item.at == 1 and token.is_name and token.key != "NULL":
        item.take()
        return unquote(token, item.template)
    operand = read_operand(item.tokens, item.at, item.end)
    return operand if operand is None or isinstance(operand, Slot) else OPAQUE


def _character_set(item: Cursor, kind: SetKind, name: str) -> SetItem:
    end = item.find({"COLLATE"})
    value = _value(Cursor(item.tokens, item.template, item.at, end))
    collation = None
    if end < item.end:
        found = _value(Cursor(item.tokens, item.template, end + 1, item.end))
        collation = found if isinstance(found, Slot | str) else None
    return SetItem(kind, SetScope.SESSION, name, value, collation)
