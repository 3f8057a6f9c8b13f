"""The time functions that clients write although a message table needs nanoseconds, and the plans for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from streamfrom.sqlparse_ext.literal_values import Bits, Number
from streamfrom.sqlparse_ext.statements import ListSlot, Opaque, Param, Slot, Value
from streamfrom.sqlparse_ext.text.nodes import SECOND_NS, UNIT_NS, Node, cut


# They mean now, and some need no parentheses.
NOW_WORDS: Final = frozenset(
    {"CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "UTC_TIMESTAMP"}
)
_NOW_CALLS: Final = NOW_WORDS | {"NOW", "SYSDATE"}
_ARITHMETIC: Final = {"DATE_ADD": 1, "ADDDATE": 1, "DATE_SUB": -1, "SUBDATE": -1}
# Functions that return or take a date or a time; a time column is neither.
TIME_FUNCTIONS: Final = frozenset({
    "NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "SYSDATE", "UTC_TIMESTAMP", "UNIX_TIMESTAMP",
    "CURDATE", "CURRENT_DATE", "CURTIME", "CURRENT_TIME", "UTC_DATE", "UTC_TIME", "DATE_ADD", "DATE_SUB", "ADDDATE",
    "SUBDATE", "ADDTIME", "SUBTIME", "TIMESTAMP", "TIMESTAMPADD", "TIMESTAMPDIFF", "DATE", "DATETIME", "STR_TO_DATE",
    "FROM_UNIXTIME", "FROM_DAYS", "MAKEDATE", "MAKETIME", "LAST_DAY", "CONVERT_TZ", "DATEDIFF", "TIMEDIFF", "TO_DAYS",
    "TO_SECONDS", "DATE_FORMAT", "TIME_FORMAT", "SEC_TO_TIME", "TIME_TO_SEC", "EXTRACT", "YEAR", "QUARTER", "MONTH",
    "WEEK", "DAY", "DAYOFMONTH", "HOUR", "MINUTE", "SECOND", "MICROSECOND", "DAYOFWEEK", "DAYOFYEAR", "WEEKDAY",
    "WEEKOFYEAR", "YEARWEEK", "MONTHNAME", "DAYNAME", "ADD_MONTHS", "GET_FORMAT", "PERIOD_ADD", "PERIOD_DIFF", "TIME",
    "TO_CHAR",
})  # fmt: skip
# Those without required parentheses, and types of CAST.
TIME_WORDS: Final = frozenset({
    "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "UTC_DATE", "UTC_TIME",
    "UTC_TIMESTAMP", "INTERVAL", "DATETIME", "TIMESTAMP", "DATE",
})  # fmt: skip
_LOWER: Final = frozenset(word.lower() for word in TIME_FUNCTIONS | TIME_WORDS)
_WORD: Final = re.compile(rb"[a-z_]+")
_SIGNS: Final = {"+": 1, "-": -1}
_TRUTHS: Final = {"TRUE": 1, "FALSE": 0}


def time_words(template: bytes, names: frozenset[str]) -> tuple[str, str]:
    """Return one of *names*, and one time function, that a template names; "" for none."""
    words = {word.decode() for word in _WORD.findall(template.lower())}
    return min(words & names, default=""), min(words & _LOWER, default="").upper()


def number_of(value: Value | Opaque) -> Decimal | int | None:
    """Return the number that a value is, or that a string represents; None for any other."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, Bits | Opaque):
        return None
    text = value.text if isinstance(value, Number) else value.decode("latin-1")
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


# --- time functions -----------------------------------------------------------------------------

# Literals, each with its factor in nanoseconds.
Shifts = tuple[tuple[Slot | Param, int], ...]


def _signed(nodes: Sequence[Node]) -> Iterator[tuple[int, list[Node]]]:
    """Yield the terms of a sum, each with its sign."""
    sign = 1
    for key, part in cut(nodes, _SIGNS):
        sign *= _SIGNS.get(key, 1)
        if part:
            yield sign, part
            sign = 1


def read_moment(nodes: Sequence[Node]) -> Shifts | None:
    """Return the distance from now of the moment in *nodes*; None if there is no such moment.

    An interval is a duration: a DAY has 24 hours, even when clocks are set back or forward.
    """
    shifts: Shifts = ()
    moment: Node | None = None
    for sign, part in _signed(nodes):
        if len(part) != 1:
            return None
        (node,) = part
        is_seconds = moment is not None and moment.key == "UNIX_TIMESTAMP"
        if isinstance(node.slot, Slot | Param) and (node.unit_ns or is_seconds):
            shifts += ((node.slot, sign * (node.unit_ns or SECOND_NS)),)
        elif moment is None and sign > 0 and (of_node := _shifts(node)) is not None:
            moment = node
            shifts += of_node
        else:
            return None
    return None if moment is None or nodes[-1].key in _SIGNS else shifts


def _shifts(node: Node) -> Shifts | None:
    """Return the distance from now of `NOW()`, `DATE_ADD(…)` and similar calls."""
    key, inside = node.key, node.inside
    if inside is None:
        return () if key in NOW_WORDS else None
    if key in _NOW_CALLS:
        return () if not inside or (len(inside) == 1 and inside[0].slot is not None) else None
    if key == "(":
        return read_moment(inside)
    if key == "UNIX_TIMESTAMP":
        # A server reads a UTC_TIMESTAMP as a time of the session's zone.
        is_utc = inside[:1] and inside[0].key == "UTC_TIMESTAMP"
        return None if is_utc else read_moment(inside) if inside else ()
    parts = [part for _, part in cut(inside, {","})]
    if key in _ARITHMETIC and len(parts) == 2 and len(parts[1]) == 1:
        base, (amount,) = parts
        unit_ns = amount.unit_ns or (UNIT_NS["DAY"] if key in ("ADDDATE", "SUBDATE") else 0)
        unit_ns *= _ARITHMETIC[key]
    elif key == "TIMESTAMPADD" and len(parts) == 3 and len(parts[0]) == len(parts[1]) == 1:
        (unit,), (amount,), base = parts
        unit_ns = UNIT_NS.get(unit.key.removeprefix("SQL_TSI_"), 0)
    else:
        return None
    shifts, slot = read_moment(base), amount.slot
    if shifts is None or not unit_ns or not isinstance(slot, Slot | Param):
        return None
    return (*shifts, (slot, unit_ns))


def read_durations(nodes: Sequence[Node]) -> list[Moment] | None:
    """Return the intervals that follow a column; None if there is more."""
    first, *others = cut(nodes, _SIGNS)
    found = []
    for _, part in others:
        slot = part[0].slot if len(part) == 1 and part[0].unit_ns else None
        if not isinstance(slot, Slot | Param):
            return None
        shift = (slot, part[0].unit_ns)
        found.append(Moment(part[0].start, part[0].end, (shift,), is_shift=True))
    return None if first.nodes else found


# (sign, factors) of literals that are multiplied and added.
Literals = tuple[tuple[int, tuple[Slot | ListSlot | Param, ...]], ...]


def read_literals(nodes: Sequence[Node]) -> Literals:
    """Return the literals that nodes add and multiply, or one literal of any kind; empty if there is more."""
    if len(nodes) == 1 and nodes[0].slot is not None and not nodes[0].unit_ns:
        return ((1, (nodes[0].slot,)),)
    found = []
    for sign, part in _signed(nodes):
        factors: list[Slot] = []
        truth = 1
        for _, factor in cut(part, {"*"}):
            if len(factor) != 1:
                return ()
            if isinstance(factor[0].slot, Slot) and not factor[0].unit_ns:
                factors.append(factor[0].slot)
            elif factor[0].key in _TRUTHS:
                truth *= _TRUTHS[factor[0].key]
            else:
                return ()
        found.append((sign * truth, tuple(factors)))
    return tuple(found)


# --- plans --------------------------------------------------------------------------------------


class Moment(NamedTuple):
    """A range of a template that means now plus *shifts*, or with *is_shift* a duration."""

    start: int
    end: int
    shifts: Shifts
    is_shift: bool = False


class Beside(NamedTuple):
    """Literals next to a time column."""

    column: str
    literals: Literals
    # The column is set to them alone; they are not compared with the column, nor one of several values.
    is_given: bool = False


class Place(NamedTuple):
    """A time column, or a time function, in an expression, and its factors and divisors there."""

    name: str
    # The nanoseconds of its unit if it counts since 1970: 1 for a time column, 0 for a function that counts nothing.
    unit_ns: int = 0
    up: tuple[Slot, ...] = ()
    down: tuple[Slot, ...] = ()
    is_column: bool = False


class MomentPlan(NamedTuple):
    """The changes to the moments of one shape."""

    moments: tuple[Moment, ...] = ()
    # The ranges of select items that contain a moment and have no alias. Each gets its text as an alias, since the
    # server names its column after the text.
    named: tuple[tuple[int, int], ...] = ()
    literals: tuple[Beside, ...] = ()
    # Time columns and time functions in one term, which is right if all are in the same unit.
    mixtures: tuple[tuple[Place, ...], ...] = ()


NO_MOMENTS: Final = MomentPlan()


class TimeColumns(NamedTuple):
    """The time columns that a statement can name."""

    names: frozenset[str]  # the time columns of the statement's message tables, in lower case
    # The names and aliases of its other tables, whose columns are no time columns.
    foreign: frozenset[str] = frozenset()
    # The columns to which an INSERT into a message table without a column list gives values; () for every other statement.
    target: tuple[str, ...] = ()
