"""Reads the time functions people write where a message table wants nanoseconds; what is planned for them.

`NOW()` in a bigint column would store 20260101120000, which is a moment in 1970. Next to a time
column, as a whole value, it can only mean the moment, so the proxy puts in the nanoseconds. Where
that is so, and what is refused, `sqlparse_ext.writes.moment_reader` says.

`Terms` cuts a statement by its tokens alone. A *term* stands between two borders: commas, AND, OR and the words that begin clauses.
Comparisons cut a term into *operands*. Groups, `( … )` and `CASE … END`, stay closed until they are asked for.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from streamfrom.sqlparse_ext.literal_values import Bits, Number
from streamfrom.sqlparse_ext.statements import ListSlot, Opaque, Param, Slot, Statement, Value
from streamfrom.sqlparse_ext.text.tokens import QUERY_WORDS, Cursor, Token


SECOND_NS: Final = 1_000_000_000
UNIT_NS: Final = {
    "MICROSECOND": 1_000,
    "SECOND": SECOND_NS,
    "MINUTE": 60 * SECOND_NS,
    "HOUR": 3_600 * SECOND_NS,
    "DAY": 86_400 * SECOND_NS,
    "WEEK": 7 * 86_400 * SECOND_NS,
}
_CALLS: Final = frozenset(
    {"NOW", "CURRENT_TIMESTAMP", "SYSDATE", "LOCALTIME", "LOCALTIMESTAMP", "UTC_TIMESTAMP"}
)
_WORDS: Final = frozenset({"CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "UTC_TIMESTAMP"})
_SIGNS: Final = {"+": 1, "-": -1}
_ARITHMETIC: Final = {"DATE_ADD": 1, "ADDDATE": 1, "DATE_SUB": -1, "SUBDATE": -1}
# What gives a date or a time, or takes one: a time column is none.
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
# Those that need no parentheses, and types of CAST.
TIME_WORDS: Final = frozenset({
    "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "UTC_DATE", "UTC_TIME",
    "UTC_TIMESTAMP", "INTERVAL", "DATETIME", "TIMESTAMP", "DATE",
})  # fmt: skip
# Those that make a literal behind them a date or a time.
LITERAL_WORDS: Final = frozenset({"TIMESTAMP", "DATE", "TIME", "TS", "D", "T"})
_LOWER: Final = frozenset(word.lower() for word in TIME_FUNCTIONS | TIME_WORDS)
WORD: Final = re.compile(rb"[a-z_]+")
_DEPTH_MAX: Final = 20
_INTERVAL_DIGITS_MAX: Final = 20


def names_function(template: bytes) -> str:
    """Return a time function that a template names, "" where it names none."""
    found = {word.decode() for word in WORD.findall(template.lower())} & _LOWER
    return min(found).upper() if found else ""


class Moment(NamedTuple):
    """Now, plus for each of *shifts* its literal times its nanoseconds.

    An interval is a duration: a DAY has 24 hours, also where clocks are put forward or back.
    """

    shifts: tuple[tuple[Slot | Param, int], ...] = ()

    def ns(self, statement: Statement, now_ns: int) -> int | None:
        """Return the nanoseconds since the epoch; None when a literal is no plain number."""
        for slot, unit_ns in self.shifts:
            value = (
                statement.argument(slot) if isinstance(slot, Param) else statement.value(slot)
            )
            amount = number_of(value)
            # No interval of use is longer than this; it also keeps out 1e999999.
            if amount is None or Decimal(amount).adjusted() >= _INTERVAL_DIGITS_MAX:
                return None
            if amount % 1 and abs(unit_ns) != SECOND_NS:
                return None  # the server rounds 1.5 MINUTE in its own way
            now_ns += int(amount * unit_ns)
        return now_ns


def number_of(value: Value | Opaque) -> Decimal | int | None:
    """Return the number that a value is, or that a string writes; None for any other."""
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


class _NoMomentError(Exception):
    """The tokens say something else."""


_Shifts = tuple[tuple[Slot | Param, int], ...]


def read_moment(cursor: Cursor, end: int) -> Moment | None:
    """Return the moment that the tokens from the cursor to *end* say; None if they say no such."""
    try:
        moment = Moment(_sum(cursor, 0))
    except _NoMomentError:
        return None
    return moment if cursor.at == end else None


def read_duration(cursor: Cursor) -> Moment | None:
    """Move past `INTERVAL n unit` and return it, as far from now; None if it is no such."""
    try:
        return Moment(_interval(cursor, 1))
    except _NoMomentError:
        return None


def _expect(cursor: Cursor, key: str) -> None:
    if not cursor.accept(key):
        raise _NoMomentError


def _sum(cursor: Cursor, depth: int) -> _Shifts:
    """Read a moment and the intervals that are added to it."""
    shifts = _term(cursor, depth)
    while sign := _SIGNS.get(cursor.key, 0):
        cursor.take()
        shifts += _interval(cursor, sign)
    return shifts


def _term(cursor: Cursor, depth: int) -> _Shifts:
    if _datetime(cursor):
        return ()
    if depth > _DEPTH_MAX:
        raise _NoMomentError
    if cursor.key == "INTERVAL":
        shifts = _interval(cursor, 1)
        _expect(cursor, "+")
        return shifts + _term(cursor, depth + 1)
    name = ""
    if cursor.key != "(" and cursor.peek(1).key == "(":
        name = cursor.take().key
    _expect(cursor, "(")
    if sign := _ARITHMETIC.get(name, 0):
        shifts = _sum(cursor, depth + 1)
        _expect(cursor, ",")
        if name in ("ADDDATE", "SUBDATE") and cursor.key != "INTERVAL":
            shifts += _shift(cursor, sign * UNIT_NS["DAY"])
        else:
            shifts += _interval(cursor, sign)
    elif name == "TIMESTAMPADD":
        unit_ns = _unit_ns(cursor)
        _expect(cursor, ",")
        shifts = _shift(cursor, unit_ns)
        _expect(cursor, ",")
        shifts += _sum(cursor, depth + 1)
    elif name == "UNIX_TIMESTAMP":
        return _seconds(cursor, depth)
    elif not name:
        shifts = _sum(cursor, depth + 1)
    else:
        raise _NoMomentError
    _expect(cursor, ")")
    return shifts


def _seconds(cursor: Cursor, depth: int) -> _Shifts:
    """Read UNIX_TIMESTAMP(), or of a moment, behind its parenthesis, and the seconds that are added to it."""
    if cursor.key == "UTC_TIMESTAMP":
        raise _NoMomentError  # a server takes it for a time of the session's zone
    shifts = () if cursor.key == ")" else _sum(cursor, depth + 1)
    _expect(cursor, ")")
    sign = _SIGNS.get(cursor.key, 0)
    if not sign or cursor.peek(1).key == "INTERVAL":
        return shifts
    cursor.take()
    return shifts + _shift(cursor, sign * SECOND_NS)


def _datetime(cursor: Cursor) -> bool:
    """Move past NOW(), NOW(6), CURRENT_TIMESTAMP and the like."""
    if cursor.key in _CALLS and cursor.peek(1).key == "(":
        cursor.at += 2
        if cursor.peek().slot is not None:
            cursor.take()
        return cursor.accept(")")
    return bool(cursor.accept_any(_WORDS))


def _interval(cursor: Cursor, sign: int) -> _Shifts:
    _expect(cursor, "INTERVAL")
    ((slot, factor),) = _shift(cursor, sign)
    return ((slot, factor * _unit_ns(cursor)),)


def _unit_ns(cursor: Cursor) -> int:
    """Move past a unit of a fixed length and return its nanoseconds."""
    unit_ns = UNIT_NS.get(cursor.take().key.removeprefix("SQL_TSI_"))
    if unit_ns is None:
        raise _NoMomentError
    return unit_ns


def _shift(cursor: Cursor, unit_ns: int) -> _Shifts:
    """Move past a literal, which may have a minus before it, or a `?`."""
    if cursor.accept("-"):
        unit_ns = -unit_ns
    slot = cursor.take().slot
    if not isinstance(slot, Slot | Param):
        raise _NoMomentError
    return ((slot, unit_ns),)


# --- plans --------------------------------------------------------------------------------------


class PlacedMoment(NamedTuple):
    """A range of a template whose expression means a moment, or with *is_shift* a duration."""

    start: int
    end: int
    moment: Moment
    is_shift: bool = False


class LiteralSum(NamedTuple):
    """Literals that are multiplied and added, next to a time column: (sign, factors) of each."""

    column: str
    terms: tuple[tuple[int, tuple[Slot, ...]], ...]
    # The sum is all that the column is given; it is not compared with the column, nor one of several values.
    is_given: bool = False


class Mixture(NamedTuple):
    """A time column and a time function that stand in one term.

    They are in the same unit where *up* multiplied, divided by *down*, comes to *unit_ns*, the
    nanoseconds of what the function counts; 0 for one that counts nothing.
    """

    column: str
    function: str
    up: tuple[Slot, ...] = ()
    down: tuple[Slot, ...] = ()
    unit_ns: int = 0


class Beside(NamedTuple):
    """A literal, a parameter or a list of literals that stands next to a time column. is_given: as of `LiteralSum`."""

    column: str
    operand: Slot | Param | ListSlot
    is_given: bool = False


class MomentPlan(NamedTuple):
    """What is to be done about the moments of one shape."""

    moments: tuple[PlacedMoment, ...] = ()
    # The ranges of select items that contain a moment and have no alias. Such an item is given its text as an alias, since the
    # server names its column after the text.
    named: tuple[tuple[int, int], ...] = ()
    literals: tuple[Beside, ...] = ()
    sums: tuple[LiteralSum, ...] = ()
    mixtures: tuple[Mixture, ...] = ()


NO_MOMENTS: Final = MomentPlan()


class TimeColumns(NamedTuple):
    """The time columns that a statement can name."""

    names: frozenset[str]  # the time columns of the statement's message tables, in lower case
    # The names and aliases of its other tables, whose columns are no time columns.
    foreign: frozenset[str] = frozenset()
    # The columns to which an INSERT into a message table without a column list gives values; () for every other statement.
    target: tuple[str, ...] = ()


# Words between two terms, unless they are the name of a function.
BORDERS: Final = frozenset({
    "SELECT", "DISTINCT", "DISTINCTROW", "FROM", "WHERE", "HAVING", "ON", "GROUP", "ORDER", "BY", "LIMIT",
    "OFFSET", "SET", "VALUES", "VALUE", "UNION", "EXCEPT", "INTERSECT", "JOIN", "INNER", "LEFT", "RIGHT",
    "CROSS", "STRAIGHT_JOIN", "NATURAL", "USING", "AND", "OR", "XOR", "&&", "||", ",", ";", "AS", "ASC", "DESC",
    "WITH", "UPDATE", "DELETE", "INSERT", "INTO", "RETURNING", "WHEN", "THEN", "ELSE", "FOR", "LOCK", "WINDOW",
    "DUPLICATE", "ROLLUP", "SQL_CALC_FOUND_ROWS", "HIGH_PRIORITY", "SQL_NO_CACHE", "SQL_CACHE", "IGNORE", "TABLE",
})  # fmt: skip
COMPARISONS: Final = frozenset({
    "=", "<=>", "<", ">", "<=", ">=", "<>", "!=", ":=", "BETWEEN", "IN", "LIKE", "REGEXP", "RLIKE", "IS",
})  # fmt: skip
PREFIXES: Final = frozenset({"NOT", "BINARY", "ALL", "ANY", "SOME"})
CLOSE: Final = {"(": ")", "CASE": "END", "{": "}"}
_PLUS_OR_MINUS: Final = frozenset({"+", "-"})
_TRUTHS: Final = {"TRUE": 1, "FALSE": 0}
_ALSO_FUNCTIONS: Final = frozenset({"LEFT", "RIGHT", "INSERT", "VALUES", "VALUE"})


class Term(NamedTuple):
    """The tokens between two borders, or an operand between two comparisons; *border* is the key of the one before it."""

    border: str
    start: int
    end: int


class Terms:
    """The terms of a template's tokens.

    ends: the end of each group, by its beginning.
    depth: how deep groups are nested; None where a group is not closed.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.ends: dict[int, int] = {}
        self._around: list[int] = []  # the beginning of the group around each token, or -1
        deepest = 0
        opened: list[int] = []
        for place, token in enumerate(tokens):
            if opened and token.key == CLOSE[tokens[opened[-1]].key]:
                self.ends[opened.pop()] = place
            self._around.append(opened[-1] if opened else -1)
            if token.key in CLOSE:
                opened.append(place)
                deepest = max(deepest, len(opened))
        self.depth = None if opened else deepest

    def key(self, place: int) -> str:
        """Return the key of a token, "" for none."""
        return self.tokens[place].key if place < len(self.tokens) else ""

    def is_call(self, place: int, end: int) -> bool:
        """Whether `name(` begins here, before *end*."""
        return place + 1 < end and self.key(place + 1) == "(" and self.tokens[place].is_name

    def behind(self, place: int) -> int:
        """Return the place behind a token, or behind the group that it begins."""
        return self.ends.get(place, place) + 1

    def is_group(self, start: int, end: int) -> bool:
        """Whether one group is all of tokens[start:end]."""
        return self.ends.get(start) == end - 1

    def cut(self, start: int, end: int) -> list[Term]:
        """Return the terms of tokens[start:end]."""
        found: list[Term] = []
        betweens = 0
        border, first, place = "", start, start
        while place < end:
            key = self.key(place)
            if key == "BETWEEN":
                betweens += 1
            elif key == "AND" and betweens:
                betweens -= 1
            elif key in BORDERS and not (key in _ALSO_FUNCTIONS and self.is_call(place, end)):
                found.append(Term(border, first, place))
                border, first, betweens = key, place + 1, 0
            place = self.behind(place)
        return [*found, Term(border, first, end)]

    def operands(self, start: int, end: int) -> list[Term]:
        """Return the operands of a term, more than one where it compares (or assigns)."""
        found: list[Term] = []
        comparison, first, place = "", start, start
        while place < end:
            key = self.key(place)
            if key in COMPARISONS or key == "AND":  # the AND of BETWEEN
                found.append(Term(comparison, first, place))
                comparison, first = key, place + 1
            place = self.behind(place)
        return [*found, Term(comparison, first, end)]

    def literal_sum(self, start: int, end: int) -> tuple[tuple[int, tuple[Slot, ...]], ...]:
        """Return the (sign, factors) of literals that are multiplied and added, FALSE having sign 0; nothing where there is more."""
        found: list[tuple[int, tuple[Slot, ...]]] = []
        cursor = Cursor(self.tokens, b"", start, end)
        while cursor.at < end:
            sign = 1
            while key := cursor.accept_any(_PLUS_OR_MINUS):
                sign = -sign if key == "-" else sign
            factors: list[Slot] = []
            is_factor = True
            while is_factor:
                token = cursor.take()
                if isinstance(token.slot, Slot):
                    factors.append(token.slot)
                elif token.key in _TRUTHS:
                    sign *= _TRUTHS[token.key]
                else:
                    return ()
                is_factor = cursor.accept("*")
            if cursor.at < end and cursor.key not in _PLUS_OR_MINUS:
                return ()
            found.append((sign, tuple(factors)))
        return tuple(found)

    def scale(
        self, start: int, end: int, outermost: int = -1
    ) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
        """Return the literals that tokens[start:end] are multiplied by, and divided by.

        Factors of the groups around it count as well, up to that which begins at *outermost*, or
        to a query.
        """
        tokens = self.tokens
        up: list[Slot] = []
        down: list[Slot] = []
        while True:
            while self.key(end) in ("*", "/", "DIV") and end + 1 < len(tokens):
                slot = tokens[end + 1].slot
                if not isinstance(slot, Slot):
                    break
                (up if tokens[end].key == "*" else down).append(slot)
                end += 2
            if start > 1 and tokens[start - 1].key == "*":
                slot = tokens[start - 2].slot
                if isinstance(slot, Slot):
                    up.append(slot)
            around = self._around[start]
            if around in (-1, outermost) or tokens[around].key != "(":
                break
            if tokens[around + 1].key in QUERY_WORDS:
                break
            start, end = around, self.ends[around] + 1
            if around and tokens[around - 1].is_name and tokens[around - 1].key not in BORDERS:
                start -= 1
        return tuple(up), tuple(down)
