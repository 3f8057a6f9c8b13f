"""What a statement leaves with its session by SQL: statements that it prepares, and advisory locks.

See https://dev.mysql.com/doc/refman/8.4/en/locking-functions.html.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from streamfrom.sqlparse_ext.statements import Kind, Shape, Slot, Statement, Uses
from streamfrom.sqlparse_ext.text.tokens import Cursor, statement_tokens


class Step(Enum):
    """What becomes of a prepared statement."""

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
    """Return whether a statement is PREPARE or EXECUTE IMMEDIATE: what it runs is a value."""
    return shape.kind is Kind.PREPARE and (
        shape.verb == "PREPARE" or shape.words[:1] == ("IMMEDIATE",)
    )


def dynamic(shape: Shape) -> Dynamic | None:
    """Return what a statement of Kind.PREPARE says; None for what cannot be read."""
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
