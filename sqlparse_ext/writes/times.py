"""Recognises the time functions people write where a message table wants nanoseconds.

`NOW()` in a bigint column would store 20260101120000, which is a moment in 1970. Given for
`time_acked` or `time_next` as the whole value, it can only mean the moment, so the proxy puts in
the nanoseconds. Anything else, `UNIX_TIMESTAMP() * 1000000000` too, is the writer's own affair.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlparse_ext.statements import (
    DEFAULT_MODE,
    Kind,
    Number,
    Opaque,
    Param,
    Shape,
    Slot,
    SqlMode,
    Statement,
    Uses,
)
from sqlparse_ext.text.lexer import fingerprint
from sqlparse_ext.text.tokens import Cursor, tokenise


if TYPE_CHECKING:
    from sqlparse_ext.statements import Value

_SECOND_NS: Final = 1_000_000_000
_UNIT_NS: Final = {
    "MICROSECOND": 1_000,
    "SECOND": _SECOND_NS,
    "MINUTE": 60 * _SECOND_NS,
    "HOUR": 3_600 * _SECOND_NS,
    "DAY": 86_400 * _SECOND_NS,
    "WEEK": 7 * 86_400 * _SECOND_NS,
}
_CALLS: Final = frozenset(
    {"NOW", "CURRENT_TIMESTAMP", "SYSDATE", "LOCALTIME", "LOCALTIMESTAMP"}
)
_WORDS: Final = frozenset({"CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
_SIGNS: Final = {"+": 1, "-": -1}
_ARITHMETIC: Final = {"DATE_ADD": 1, "ADDDATE": 1, "DATE_SUB": -1, "SUBDATE": -1}


class Moment(NamedTuple):
    """Now, plus *slot* times *unit_ns*, which is negative for a minus."""

    slot: Slot | Param | None = None
    unit_ns: int = 0

    def ns(self, statement: Statement, now_ns: int) -> int | None:
        """Return the nanoseconds since the epoch; None when the literal is no plain number."""
        if self.slot is None:
            return now_ns
        slot = self.slot
        value = statement.argument(slot) if isinstance(slot, Param) else statement.value(slot)
        amount = _amount(value)
        if amount is None or (amount % 1 and abs(self.unit_ns) != _SECOND_NS):
            return None  # the server rounds 1.5 MINUTE in its own way
        return now_ns + int(amount * self.unit_ns)


def _amount(value: Value | Opaque) -> Decimal | None:
    if isinstance(value, Opaque):
        return None
    if isinstance(value, int):
        return Decimal(value)
    text = value.text if isinstance(value, Number) else (value or b"").decode("latin-1")
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return None
    # No interval of use is longer than this; it also keeps out NaN and 1e999999.
    return amount if amount.is_finite() and amount.adjusted() < 20 else None


def read_moment(cursor: Cursor, end: int) -> Moment | None:
    """Return the moment that the tokens from the cursor to *end* say; None if they say no such."""
    moment = _sum(cursor)
    return moment if cursor.at == end else None


def _sum(cursor: Cursor) -> Moment | None:
    if sign := _ARITHMETIC.get(cursor.key, 0):
        cursor.take()
        if not (cursor.accept("(") and _datetime(cursor) and cursor.accept(",")):
            return None
        moment = _interval(cursor, sign)
        return moment if cursor.accept(")") else None
    if _datetime(cursor):
        sign = _SIGNS.get(cursor.key, 0)
        if not sign:
            return Moment()
        cursor.take()
        return _interval(cursor, sign)
    if cursor.accept("UNIX_TIMESTAMP", "(", ")"):
        sign = _SIGNS.get(cursor.key, 0)
        if not sign:
            return Moment()
        cursor.take()
        slot = cursor.take().slot
        return Moment(slot, sign * _SECOND_NS) if isinstance(slot, Slot | Param) else None
    return None


def _datetime(cursor: Cursor) -> bool:
    """Move past NOW(), NOW(6), CURRENT_TIMESTAMP and the like."""
    if cursor.key in _CALLS and cursor.peek(1).key == "(":
        cursor.at += 2
        if cursor.peek().slot is not None:
            cursor.take()
        return cursor.accept(")")
    return bool(cursor.accept_any(_WORDS))


def _interval(cursor: Cursor, sign: int) -> Moment | None:
    if not cursor.accept("INTERVAL"):
        return None
    slot = cursor.take().slot
    unit_ns = _UNIT_NS.get(cursor.take().key)
    return Moment(slot, sign * unit_ns) if isinstance(slot, Slot | Param) and unit_ns else None


def moment_ns(expression: bytes, now_ns: int, mode: SqlMode = DEFAULT_MODE) -> int | None:
    """Return the nanoseconds that *expression*, one value of a VALUES row, means; else None."""
    template, literals, runs = fingerprint(expression, mode)
    tokens = tokenise(template).tokens
    moment = read_moment(Cursor(tokens, template), len(tokens))
    if moment is None:
        return None
    shape = Shape(Kind.OTHER, Uses(0), template)
    return moment.ns(Statement(expression, mode, shape, literals, runs), now_ns)
