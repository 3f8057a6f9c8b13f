"""Where a statement sets a time column of a message table beside a moment, or beside what is none.

A time column holds nanoseconds since 1970; a server compares it with `NOW()` as the number
20261122150345, a moment of 1970, and says nothing. So what is a moment and stands beside a time
column is found here, to become nanoseconds, and what cannot become any is refused.

Tokens decide. A statement is cut into *terms*, at commas, AND, OR and the words that begin
clauses, and each term into *operands*, at comparisons. What the rule is, in this order:

* an operand that is a time column makes the moments beside it nanoseconds (in COALESCE, GREATEST,
  IF, CASE and the like, the arguments that may become the value are operands as well);
* a literal beside it must be a number of nanoseconds;
* a term with a time column and a time function is refused otherwise, unless the function counts
  seconds (UNIX_TIMESTAMP) or another unit, and both are brought to the same unit.

What is no column of a message table by its name (a view's, a derived table's, a variable) is not
seen.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlparse_ext.errors import Unsupported
from sqlparse_ext.reading.inserts import insert_parts
from sqlparse_ext.statements import InsertSource, Number, Opaque, Slot
from sqlparse_ext.text.lexer import Edit, locate
from sqlparse_ext.text.tokens import Cursor, statement_tokens, unquote
from sqlparse_ext.writes.times import UNIT_NS, Moment, read_duration, read_moment


if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlparse_ext.statements import ListSlot, Param, Shape, Statement, Value
    from sqlparse_ext.text.tokens import Token

# Words between two terms, unless they are the name of a function.
_BORDERS: Final = frozenset(
    {
        "SELECT",
        "DISTINCT",
        "DISTINCTROW",
        "FROM",
        "WHERE",
        "HAVING",
        "ON",
        "GROUP",
        "ORDER",
        "BY",
    }
    | {"LIMIT", "OFFSET", "SET", "VALUES", "VALUE", "UNION", "EXCEPT", "INTERSECT", "JOIN"}
    | {
        "INNER",
        "LEFT",
        "RIGHT",
        "CROSS",
        "STRAIGHT_JOIN",
        "NATURAL",
        "USING",
        "AND",
        "OR",
        "XOR",
    }
    | {"&&", "||", ",", ";", "AS", "ASC", "DESC", "WITH", "UPDATE", "DELETE", "INSERT", "INTO"}
    | {"RETURNING", "WHEN", "THEN", "ELSE", "FOR", "LOCK", "WINDOW", "DUPLICATE", "ROLLUP"}
    | {"SQL_CALC_FOUND_ROWS", "HIGH_PRIORITY", "SQL_NO_CACHE", "SQL_CACHE", "IGNORE", "TABLE"}
)
_ALSO_FUNCTIONS: Final = frozenset({"LEFT", "RIGHT", "INSERT", "VALUES", "VALUE"})
_COMPARISONS: Final = frozenset(
    {"=", "<=>", "<", ">", "<=", ">=", "<>", "!=", ":=", "BETWEEN", "IN", "LIKE", "REGEXP"}
    | {"RLIKE", "IS"}
)
_QUERY_WORDS: Final = frozenset({"SELECT", "WITH", "TABLE", "VALUES"})
# Of these the value is one of the arguments (for IF, but the first).
_ALIKE: Final = frozenset(
    {
        "COALESCE",
        "IFNULL",
        "NULLIF",
        "GREATEST",
        "LEAST",
        "MIN",
        "MAX",
        "ANY_VALUE",
        "IF",
        "VALUES",
    }
    | {"VALUE", "NVL"}
)
_BOOLEAN: Final = frozenset({"EXISTS", "ISNULL"})
# What gives a date or a time, or takes one: a time column is none.
_TIME_FUNCTIONS: Final = frozenset(
    {"NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "SYSDATE", "UTC_TIMESTAMP"}
    | {"UNIX_TIMESTAMP", "CURDATE", "CURRENT_DATE", "CURTIME", "CURRENT_TIME", "UTC_DATE"}
    | {"UTC_TIME", "DATE_ADD", "DATE_SUB", "ADDDATE", "SUBDATE", "ADDTIME", "SUBTIME"}
    | {"TIMESTAMP", "TIMESTAMPADD", "TIMESTAMPDIFF", "DATE", "DATETIME", "STR_TO_DATE"}
    | {
        "FROM_UNIXTIME",
        "FROM_DAYS",
        "MAKEDATE",
        "MAKETIME",
        "LAST_DAY",
        "CONVERT_TZ",
        "DATEDIFF",
    }
    | {"TIMEDIFF", "TO_DAYS", "TO_SECONDS", "DATE_FORMAT", "TIME_FORMAT", "SEC_TO_TIME"}
    | {
        "TIME_TO_SEC",
        "EXTRACT",
        "YEAR",
        "QUARTER",
        "MONTH",
        "WEEK",
        "DAY",
        "DAYOFMONTH",
        "HOUR",
    }
    | {"MINUTE", "SECOND", "MICROSECOND", "DAYOFWEEK", "DAYOFYEAR", "WEEKDAY", "WEEKOFYEAR"}
    | {"YEARWEEK", "MONTHNAME", "DAYNAME", "ADD_MONTHS", "GET_FORMAT", "PERIOD_ADD"}
    | {"PERIOD_DIFF", "TIME", "TO_CHAR"}
)
# Those that need no parentheses.
_TIME_WORDS: Final = frozenset(
    {"CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_DATE", "CURRENT_TIME"}
    | {"UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP", "INTERVAL"}
)
# Those that make a literal behind them one.
_LITERAL_WORDS: Final = frozenset({"TIMESTAMP", "DATE", "TIME", "TS", "D", "T"})
_TIME_WORDS_LOWER: Final = frozenset(word.lower() for word in _TIME_FUNCTIONS | _TIME_WORDS)
_WORD: Final = re.compile(rb"[a-z_]+")
# A longer one takes more than some 10 ms to read, in which nobody else is served: of that it is
# asked only whether it has a time column and a time function, literals left out.
_TEMPLATE_BYTES_MAX: Final = 16 << 10
_SIGNS: Final = frozenset({"+", "-"})
_CLOSE: Final = {"(": ")", "CASE": "END", "{": "}"}
_NO_OPERANDS: Final = frozenset({"NOT", "BINARY", "ALL", "ANY", "SOME"})
_SECOND_NS: Final = 1_000_000_000
# 1973 in nanoseconds: microseconds since 1970 reach it in the year 5138.
_NS_MIN: Final = 10**17
_EXPONENT_MAX: Final = 30
# Servers refuse aliases of more than 256 characters.
_ALIAS_BYTES_MAX: Final = 200


class PlacedMoment(NamedTuple):
    """A range of a template whose expression means a moment, or with *is_shift* a duration."""

    start: int
    end: int
    moment: Moment
    is_shift: bool = False


class Sum(NamedTuple):
    """Literals that are multiplied and added, beside a time column: (sign, factors) of each term."""

    column: str
    terms: tuple[tuple[int, tuple[Slot, ...]], ...]


class Mixture(NamedTuple):
    """A time column and a function that stand in one term and fit no rule."""

    column: str
    function: str


class Factor(NamedTuple):
    """A time column and a count of seconds (or of another unit) in one term.

    They are in the same unit where what is multiplied by, *up*, and divided by, *down*, comes to
    *unit_ns*, the nanoseconds of what is counted.
    """

    up: tuple[Slot, ...]
    down: tuple[Slot, ...]
    unit_ns: int
    mixture: Mixture


class Beside(NamedTuple):
    """A literal, a parameter or a list of literals that stands beside a time column."""

    column: str
    operand: Slot | Param | ListSlot


class MomentPlan(NamedTuple):
    """What is to be done about the moments of one shape.

    named: the ranges of the template of what is selected with a moment in it, and has no alias:
        a column keeps the name that its text gives it.
    """

    moments: tuple[PlacedMoment, ...] = ()
    named: tuple[tuple[int, int], ...] = ()
    literals: tuple[Beside, ...] = ()
    sums: tuple[Sum, ...] = ()
    factors: tuple[Factor, ...] = ()
    mixtures: tuple[Mixture, ...] = ()


NO_MOMENTS: Final = MomentPlan()


class TimeColumns(NamedTuple):
    """The time columns that a statement can name.

    names: of its message tables, in lower case.
    foreign: the names and aliases of its other tables, whose columns are none of them.
    target: of a statement that writes a message table, what an INSERT without a list of columns
        gives values to; () of every other statement.
    """

    names: frozenset[str]
    foreign: frozenset[str] = frozenset()
    target: tuple[str, ...] = ()


class _Place(NamedTuple):
    """What stands in tokens[start:end]: a time column, or a time function, and its name."""

    name: str
    start: int
    end: int


class _Found(NamedTuple):
    """What an operand, or a term, is made of.

    columns, functions: the time columns and functions that its value is made of.
    is_column: its value is a time column's.
    is_moment: its value is one of *moments*.
    moments: what becomes nanoseconds if it stands beside a time column.
    literals: what must be nanoseconds then.
    terms: what is added up to that, see `Sum`.
    """

    columns: tuple[_Place, ...] = ()
    functions: tuple[_Place, ...] = ()
    is_column: bool = False
    is_moment: bool = False
    moments: tuple[PlacedMoment, ...] = ()
    literals: tuple[Slot | Param | ListSlot, ...] = ()
    terms: tuple[tuple[int, tuple[Slot, ...]], ...] = ()


class _Term(NamedTuple):
    """The tokens between two borders; *border* is the key of the one before it."""

    border: str
    start: int
    end: int


_NOTHING: Final = _Found()
# A word behind a column, or before one, that is no name.
_NO_ALIASES: Final = (
    _BORDERS
    | _COMPARISONS
    | _NO_OPERANDS
    | frozenset(
        {
            "DIV",
            "MOD",
            "COLLATE",
            "END",
            "CASE",
            "NULL",
            "TRUE",
            "FALSE",
            "KEY",
            "INTERVAL",
            "EXISTS",
        }
        | {"UNKNOWN", "ESCAPE", "OVER", "PARTITION", "ROWS", "RANGE", "REPLACE", "LOW_PRIORITY"}
        | {
            "QUICK",
            "DELAYED",
            "SQL_SMALL_RESULT",
            "SQL_BIG_RESULT",
            "SQL_BUFFER_RESULT",
            "OUTER",
        }
    )
)
# What stands behind AS in a CAST.
_TYPES: Final = frozenset(
    {"SIGNED", "UNSIGNED", "INTEGER", "INT", "BIGINT", "DECIMAL", "CHAR", "BINARY", "DOUBLE"}
    | {"FLOAT", "REAL", "JSON", "NCHAR"}
)
# Deeper statements, and terms with more pairs, are not looked into: they are refused.
_DEPTH_MAX: Final = 60
_PAIRS_MAX: Final = 64


@lru_cache(maxsize=2048)
def moment_plan(shape: Shape, columns: TimeColumns) -> MomentPlan:
    """Return what is to be done about the moments in statements of *shape*: once for a shape."""
    template = shape.template
    if len(template) > _TEMPLATE_BYTES_MAX:
        times = {word.decode() for word in _WORD.findall(template.lower())} & columns.names
        function = names_function(template)
        if not times or not function:
            return NO_MOMENTS
        return MomentPlan(mixtures=(Mixture(min(times), function),))
    return _Reader(statement_tokens(shape.template), shape.template, columns).plan()


@lru_cache(maxsize=2048)
def value_plan(template: bytes, column: str) -> MomentPlan:
    """Return what is to be done about one value, with this template, that *column* is given."""
    tokens = statement_tokens(template)
    return _Reader(tokens, template, TimeColumns(frozenset({column}))).plan_of_value(column)


def names_function(template: bytes) -> str:
    """Return a time function that a template names, "" where it names none."""
    found = {word.decode() for word in _WORD.findall(template.lower())} & _TIME_WORDS_LOWER
    return min(found).upper() if found else ""


def moment_edits(plan: MomentPlan, statement: Statement, now_ns: int) -> list[Edit]:
    """Return the edits of the template that make moments nanoseconds; *now_ns* is the one moment.

    Raises:
        Unsupported: the amount of an interval is none that is exact here.
    """
    edits = []
    for start, end, moment, is_shift in plan.moments:
        ns = moment.ns(statement, 0 if is_shift else now_ns)
        if ns is None:
            raise Unsupported(
                "an INTERVAL for a time column that is not a whole number (of seconds, a decimal)"
            )
        edits.append(Edit(start, end, b"%d" % ns if ns >= 0 else b"(%d)" % ns))
    for start, end in plan.named:
        first, last = locate(statement.sql, statement.mode, (start, end))
        name = statement.sql[first:last]
        if len(name) <= _ALIAS_BYTES_MAX:
            edits.append(Edit(end, end, b" AS `%b`" % name.replace(b"`", b"``")))
    return edits


def check_moments(plan: MomentPlan, statement: Statement) -> None:
    """Raise Unsupported where *statement*, of the plan's shape, would take a moment for another."""
    for mixture in plan.mixtures:
        raise refusal(mixture)
    for factor in plan.factors:
        if _ratio(factor.up, factor.down, statement) != factor.unit_ns:
            raise refusal(factor.mixture)
    for column, operand in plan.literals:
        for value in statement.values((operand,)) or ():
            check_value(value, column)
    for each in plan.sums:
        total = Fraction(0)
        for sign, slots in each.terms:
            product = _ratio(slots, (), statement)
            if product is None:
                break
            total += sign * product
        else:
            check_value(int(total), each.column)


def refusal(mixture: Mixture) -> Unsupported:
    """Return the error for what stands together and must not."""
    return Unsupported(
        f"{mixture.function} here with {mixture.column}, which holds nanoseconds since 1970; write"
        " NOW() or NOW() + INTERVAL n SECOND, MINUTE, HOUR, DAY or WEEK as the whole of what stands"
        " beside it, or UNIX_TIMESTAMP('2026-01-31 12:00:00') * 1000000000"
    )


def check_value(value: Value | Opaque, column: str) -> None:
    """Raise Unsupported for a value that *column* can only have been given by mistake.

    Seconds, milliseconds and microseconds since 1970, and a date as a number, are all nanoseconds
    of the first days of 1970: an ack at such a moment would be purged at once. What is less than a
    second, as 0 and 1, is meant as it is.
    """
    if value is None or isinstance(value, Opaque):
        return
    number = _number(value)
    if number is None:
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        raise Unsupported(
            f"{text[:40]!r} for {column}, which holds nanoseconds since 1970; write"
            " NOW() + INTERVAL n SECOND, or UNIX_TIMESTAMP('2026-01-31 12:00:00') * 1000000000"
        )
    if _SECOND_NS <= number < _NS_MIN:
        raise Unsupported(
            f"{number} for {column}, which holds nanoseconds since 1970: that were a moment of"
            " 1970; write NOW(), or seconds * 1000000000"
        )


def _number(value: int | bytes | Number) -> Decimal | int | None:
    if isinstance(value, int):
        return value
    text = value.text if isinstance(value, Number) else value.decode("latin-1")
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _ratio(
    up: tuple[Slot, ...], down: tuple[Slot, ...], statement: Statement
) -> Fraction | None:
    """Return the product of *up* through that of *down*; None where it is no plain number."""
    ratio = Fraction(1)
    for slots, is_up in ((up, True), (down, False)):
        for slot in slots:
            value = statement.value(slot)
            number = None if value is None else _number(value)
            # No more digits than a product of use has: Fraction would write out 1e999999.
            if number is None or abs(Decimal(number).adjusted()) > _EXPONENT_MAX:
                return None
            if not (number or is_up):
                return None
            ratio = ratio * Fraction(number) if is_up else ratio / Fraction(number)
    return ratio


class _Reader:
    """Reads one template."""

    def __init__(self, tokens: list[Token], template: bytes, columns: TimeColumns) -> None:
        self._tokens = tokens
        self._template = template
        self._names = columns.names
        self._foreign = columns.foreign
        self._target = columns.target
        self._ends: dict[int, int] = {}  # of a group, by its beginning
        self._inside: list[int] = []  # the beginning of the group around each token, or -1
        self._hidden: set[str] = set()
        self._stamps: set[str] = set()  # the aliases of time functions
        self._moments: list[PlacedMoment] = []
        self._kept_names: list[tuple[int, int]] = []
        self._literals: list[Beside] = []
        self._sums: list[Sum] = []
        self._factors: list[Factor] = []
        self._mixtures: list[Mixture] = []

    def plan(self) -> MomentPlan:
        """Return what is to be done."""
        tokens = self._tokens
        rows, query = self._insert_parts()
        is_named = any(self._is_name(token) for token in tokens)
        if not is_named and query is None:
            return NO_MOMENTS
        self._hide_aliases()
        if self._match_groups() > _DEPTH_MAX:
            self._refuse_all()
        else:
            first, last = rows or (0, 0)
            self._all_terms(0, first)
            if query is not None:
                self._assigned(last, query)
                last = query
            self._statement(last, len(tokens))
        return self._result()

    def plan_of_value(self, column: str) -> MomentPlan:
        """Return what is to be done about all the tokens, the value of *column*."""
        tokens = self._tokens
        if self._match_groups() > _DEPTH_MAX:
            self._refuse_all()
        else:
            found = self._term(0, len(tokens))
            self._relate([_Found((_Place(column, -1, -1),), is_column=True), found])
        return self._result()

    def _result(self) -> MomentPlan:
        plan = MomentPlan(
            tuple(self._moments),
            tuple(self._kept_names),
            tuple(self._literals),
            tuple(self._sums),
            tuple(self._factors),
            tuple(self._mixtures),
        )
        return plan if any(plan) else NO_MOMENTS

    def _insert_parts(self) -> tuple[tuple[int, int] | None, int | None]:
        """Return the range of an INSERT's rows, or (where its query begins, twice) and its end.

        Rows are not looked at here: a template does not have all of them.
        """
        cursor = Cursor(self._tokens, self._template)
        if not cursor.accept_any({"INSERT", "REPLACE"}):
            return None, None
        parts = insert_parts(cursor)
        if parts is None:
            return None, None
        start, end = parts.source_at
        if parts.source is InsertSource.VALUES:
            return (start, end), None
        if parts.source is InsertSource.SELECT and self._target:
            self._target = parts.columns or self._target
            return (start, start), end
        return None, None

    def _match_groups(self) -> int:
        """Find where groups end, and return how deep they are nested."""
        deepest = 0
        opened: list[int] = []
        for place, token in enumerate(self._tokens):
            if opened and token.key == _CLOSE[self._tokens[opened[-1]].key]:
                self._ends[opened.pop()] = place
            self._inside.append(opened[-1] if opened else -1)
            if token.key in _CLOSE:
                opened.append(place)
                deepest = max(deepest, len(opened))
        # What is not closed is no statement, as far as can be told here.
        return deepest if not opened else _DEPTH_MAX + 1

    def _is_name(self, token: Token) -> bool:
        return token.is_name and unquote(token, self._template).lower() in self._names

    def _hide_aliases(self) -> None:
        """Note which names of time columns the statement gives to something else."""
        tokens = self._tokens
        aliases: set[str] = set()
        is_stamp = False  # a time function stands in the expression so far
        for place in range(1, len(tokens)):
            token, before = tokens[place], tokens[place - 1]
            if token.key in (",", "SELECT", "FROM", "WHERE"):
                is_stamp = False
            elif self._function_at(place, len(tokens)):
                is_stamp = True
            elif (
                is_stamp
                and token.is_name
                and before.key in ("AS", ")")
                and token.key not in _NO_ALIASES | _TYPES
            ):
                self._stamps.add(unquote(token, self._template).lower())
            if not token.is_name or (place + 1 < len(tokens) and tokens[place + 1].key == "("):
                continue
            if before.key == "AS" and place > 1:
                before = tokens[place - 2]
            elif token.key in _NO_ALIASES:
                continue
            name = unquote(token, self._template).lower()
            if self._is_name(before):
                if name != unquote(before, self._template).lower():
                    aliases.add(name)
            elif (
                name in self._names
                and (before.slot is not None or before.key in (")", "END") or before.is_name)
                and before.key not in _NO_ALIASES
            ):
                self._hidden.add(name)
        # What is another name of a time column is refused beside a moment, and not translated:
        # elsewhere in the statement it may mean a column of its own.
        self._hidden |= aliases
        self._names |= aliases

    def _refuse_all(self) -> None:
        for place, token in enumerate(self._tokens):
            if self._function_at(place, len(self._tokens)):
                self._mixtures.append(Mixture(min(self._names), token.key))
                return

    # --- terms and operands -----------------------------------------------------------------

    def _terms(self, start: int, end: int) -> list[_Term]:
        """Return the terms of tokens[start:end], groups unopened."""
        tokens = self._tokens
        found: list[_Term] = []
        betweens = 0
        border, first, place = "", start, start
        while place < end:
            key = tokens[place].key
            if key in _CLOSE:
                place = min(self._ends[place], end - 1) + 1
                continue
            if key == "BETWEEN":
                betweens += 1
            elif key == "AND" and betweens:
                betweens -= 1
            elif key in _BORDERS and not (
                key in _ALSO_FUNCTIONS and place + 1 < end and tokens[place + 1].key == "("
            ):
                found.append(_Term(border, first, place))
                border, first = key, place + 1
                betweens = 0
            place += 1
        found.append(_Term(border, first, end))
        return found

    def _all_terms(self, start: int, end: int) -> list[tuple[_Term, _Found]]:
        return [(term, self._term(term.start, term.end)) for term in self._terms(start, end)]

    def _statement(self, start: int, end: int) -> None:
        """Read the terms of a statement; what it selects keeps its names."""
        tokens = self._tokens
        in_list = False
        terms = self._terms(start, end)
        for term, after in zip(terms, [*terms[1:], None], strict=True):
            if term.border in ("SELECT", "FROM"):
                in_list = term.border == "SELECT"
            count = len(self._moments)
            self._term(term.start, term.end)
            if not in_list or len(self._moments) == count or (after and after.border == "AS"):
                continue
            last = tokens[term.end - 1]
            is_whole = after is None or after.border in (",", "FROM", "WHERE", "LIMIT", "UNION")
            if (
                is_whole
                and term.border in ("SELECT", ",")
                and not (last.is_name and self._moments[-1].end < last.start)
            ):
                self._kept_names.append((tokens[term.start].start, last.end))

    def _assigned(self, start: int, end: int) -> None:
        """Read the query of an INSERT, whose columns are assigned by their places."""
        tokens = self._tokens
        while start < end and tokens[start].key == "(" and self._ends[start] == end - 1:
            start, end = start + 1, end - 1
        place, in_list, is_known = 0, False, True
        for term in self._terms(start, end):
            if term.border == "SELECT":
                place, in_list, is_known = 0, True, True
            elif term.border == "FROM":
                in_list = False
            elif term.border == "," and in_list:
                place += 1
            found = self._term(term.start, term.end)
            if not in_list or term.border not in ("SELECT", ",", "DISTINCT"):
                continue
            if term.start < term.end and tokens[term.end - 1].key == "*":
                is_known = False
            name = self._target[place] if place < len(self._target) else ""
            if not is_known and found.functions:
                self._mixtures.append(Mixture(min(self._names), found.functions[0].name))
            elif is_known and name in self._names:
                column = _Found((_Place(name, -1, -1),), is_column=True)
                self._relate([column, found])

    def _term(self, start: int, end: int) -> _Found:
        """Read a term; return what its value is made of, nothing for one that is true or false."""
        tokens = self._tokens
        operands: list[_Found] = []
        first = place = start
        is_compared = is_list = False
        while True:
            key = tokens[place].key if place < end else ""
            if place >= end or key in _COMPARISONS or (key == "AND" and is_compared):
                operands += (
                    self._members(first, place) if is_list else [self._operand(first, place)]
                )
                if place >= end:
                    break
                is_compared = True
                is_list = key == "IN"
                first = place + 1
            place = self._ends[place] + 1 if key in _CLOSE else place + 1
        if is_compared:
            self._relate(operands)
            return _NOTHING
        (found,) = operands
        if found.columns and found.functions:
            self._relate([found])
            return _NOTHING
        return found

    def _members(self, start: int, end: int) -> list[_Found]:
        """Return the operands of `IN ( … )`."""
        if self._wraps(start, end) and self._tokens[start + 1].key not in _QUERY_WORDS:
            return [found for _, found in self._all_terms(start + 1, end - 1)]
        return [self._operand(start, end)]

    def _wraps(self, start: int, end: int) -> bool:
        """Whether one pair of parentheses is all of tokens[start:end]."""
        return (
            end - start > 2 and self._tokens[start].key == "(" and self._ends[start] == end - 1
        )

    def _operand(self, start: int, end: int) -> _Found:
        tokens = self._tokens
        while start < end and tokens[start].key in _NO_OPERANDS:
            start += 1
        while start < end and tokens[end - 1].key == "NOT":
            end -= 1
        if start >= end:
            return _NOTHING
        slot = tokens[start].slot
        if end - start == 1 and slot is not None:
            return _Found(literals=(slot,))
        if terms := self._literal_terms(start, end):
            return _Found(terms=terms)
        if (column := self._column(start, end)) is not None:
            return column
        if (moment := self._moment(start, end)) is not None:
            return moment
        if self._wraps(start, end):
            return self._group(start + 1, end - 1)
        if tokens[start].key == "CASE" and self._ends[start] == end - 1:
            return self._case(start, end)
        if (
            end - start > 2
            and tokens[start + 1].key == "("
            and tokens[start].is_name
            and self._ends[start + 1] == end - 1
        ):
            return self._call(start, end)
        return self._mixed(start, end)

    def _literal_terms(self, start: int, end: int) -> tuple[tuple[int, tuple[Slot, ...]], ...]:
        """Read literals with `*`, `+` and `-` between them; nothing where there is more."""
        tokens = self._tokens
        terms: list[tuple[int, tuple[Slot, ...]]] = []
        place = start
        while place < end:
            sign = 1
            while place < end and tokens[place].key in _SIGNS:
                sign = -sign if tokens[place].key == "-" else sign
                place += 1
            factors: list[Slot] = []
            while place < end:
                slot = tokens[place].slot
                if not isinstance(slot, Slot):
                    return ()
                factors.append(slot)
                place += 1
                if place >= end or tokens[place].key != "*":
                    break
                place += 1
            if not factors or (place < end and tokens[place].key not in _SIGNS):
                return ()
            terms.append((sign, tuple(factors)))
        return tuple(terms)

    def _column(self, start: int, end: int) -> _Found | None:
        """Read a time column, plus or minus intervals."""
        tokens = self._tokens
        after = self._behind_name(start, end)
        place = self._named(start, after)
        if place is None or place.name in self._hidden:
            return None
        shifts: list[PlacedMoment] = []
        cursor = Cursor(tokens, self._template, after)
        while cursor.at < end:
            if cursor.at == end - 1 and cursor.peek().is_name and not shifts:
                break  # an alias
            if cursor.key not in _SIGNS:
                return None
            cursor.take()
            first = cursor.at
            duration = read_duration(cursor)
            if duration is None or cursor.at > end:
                return None
            ends = tokens[first].start, tokens[cursor.at - 1].end
            shifts.append(PlacedMoment(*ends, duration, is_shift=True))
        return _Found((place,), is_column=True, moments=tuple(shifts))

    def _behind_name(self, start: int, end: int) -> int:
        """Return the place behind `a.b.c` at *start*."""
        tokens = self._tokens
        if start >= end or not tokens[start].is_name:
            return start
        place = start + 1
        while place + 1 < end and tokens[place].key == "." and tokens[place + 1].is_name:
            place += 2
        return place

    def _named(self, start: int, after: int) -> _Place | None:
        """Return the time column that the name tokens[start:after] means."""
        tokens = self._tokens
        if start >= after or not self._is_name(tokens[after - 1]):
            return None
        if after < len(tokens) and tokens[after].key in ("(", "."):
            return None
        if after - start > 1:
            qualifier = unquote(tokens[after - 3], self._template).lower()
            if qualifier in self._foreign:
                return None
        name = unquote(tokens[after - 1], self._template).lower()
        return _Place(name, start, after)

    def _moment(self, start: int, end: int) -> _Found | None:
        tokens = self._tokens
        for last in (end, end - 1):
            if last < end and not tokens[last].is_name:  # an alias
                break
            moment = read_moment(Cursor(tokens, self._template, start), last)
            if moment is not None and last > start:
                placed = PlacedMoment(tokens[start].start, tokens[last - 1].end, moment)
                place = _Place(tokens[start].key, start, last)
                return _Found((), (place,), is_moment=True, moments=(placed,))
        return None

    def _group(self, start: int, end: int) -> _Found:
        """Read what is inside of parentheses that call nothing."""
        if start < end and self._tokens[start].key in _QUERY_WORDS:
            return self._query(start, end)
        terms = self._all_terms(start, end)
        if len(terms) == 1:
            return terms[0][1]
        return _merged(found for _, found in terms)

    def _query(self, start: int, end: int) -> _Found:
        """Read a subquery, whose value is made of what it selects."""
        selected: list[_Found] = []
        in_list = False
        for term, found in self._all_terms(start, end):
            if term.border in ("SELECT", "FROM"):
                in_list = term.border == "SELECT"
            if in_list:
                selected.append(found)
        return _merged(selected)

    def _case(self, start: int, end: int) -> _Found:
        """Read CASE … END: its value is one of the results, its operand is compared."""
        compared: list[_Found] = []
        results: list[_Found] = []
        part = "CASE"
        for term, found in self._all_terms(start + 1, end - 1):
            if term.border in ("WHEN", "THEN", "ELSE"):
                part = term.border
            (results if part in ("THEN", "ELSE") else compared).append(found)
        has_operand = self._tokens[start + 1].key != "WHEN"
        if has_operand:
            self._relate(compared)
        return self._one_of(results)

    def _call(self, start: int, end: int) -> _Found:
        """Read `name(…)`."""
        name = self._tokens[start].key
        if name in _ALIKE:
            arguments = [found for _, found in self._all_terms(start + 2, end - 1)]
            return self._one_of(arguments[1:] if name == "IF" else arguments)
        inner = self._group(start + 2, end - 1)
        if name in _BOOLEAN:
            return _NOTHING
        if name not in _TIME_FUNCTIONS:
            return _Found(inner.columns, inner.functions)
        function = _Place(name, start, end)
        for column in inner.columns[:_PAIRS_MAX]:
            if name == "FROM_UNIXTIME":
                up, down = self._scale(column, start + 1)
                mixture = Mixture(column.name, name)
                self._factors.append(Factor(down, up, _SECOND_NS, mixture))
            else:
                self._mixtures.append(Mixture(column.name, name))
        return _Found((), (function,))

    def _one_of(self, values: list[_Found]) -> _Found:
        """Return what an expression is that has one of *values*, which are compared or stored alike."""
        if any(value.is_column for value in values):
            self._relate(values)
            return _Found(
                tuple(place for value in values for place in value.columns), is_column=True
            )
        merged = _merged(values)
        is_moment = any(value.is_moment for value in values) and all(
            value.is_moment or not (value.columns or value.functions) for value in values
        )
        return merged._replace(
            is_moment=is_moment,
            moments=tuple(m for value in values for m in value.moments) if is_moment else (),
            literals=tuple(slot for value in values for slot in value.literals),
        )

    def _mixed(self, start: int, end: int) -> _Found:
        """Read an operand that is an expression of several."""
        tokens = self._tokens
        parts: list[_Found] = []
        place = start
        while place < end:
            token = tokens[place]
            if token.key in _CLOSE:
                inside = min(self._ends[place], end)
                if token.key == "CASE":
                    parts.append(self._case(place, inside + 1))
                else:
                    parts.append(self._group(place + 1, inside))
                place = inside + 1
            elif place + 1 < end and tokens[place + 1].key == "(" and token.is_name:
                after = min(self._ends[place + 1], end - 1) + 1
                parts.append(self._call(place, after))
                place = after
            elif self._function_at(place, end):
                parts.append(_Found((), (_Place(token.key, place, place + 1),)))
                place += 1
            elif token.is_name:
                after = self._behind_name(place, end)
                column = self._named(place, after)
                if column is not None:
                    parts.append(_Found((column,)))
                elif unquote(tokens[after - 1], self._template).lower() in self._stamps:
                    parts.append(_Found((), (_Place(tokens[after - 1].key, place, after),)))
                place = after
            else:
                place += 1
        return _merged(parts)

    def _function_at(self, place: int, end: int) -> bool:
        """Whether a time function stands here, a word that is one, or a literal of a date."""
        tokens = self._tokens
        key = tokens[place].key
        if place + 1 < end:
            after = tokens[place + 1]
            if after.key == "(" and key in _TIME_FUNCTIONS:
                return True
            if after.slot is not None and key in _LITERAL_WORDS:
                return True
        if key[:2] == "@@":
            return key.lower().endswith("timestamp")
        return key in _TIME_WORDS or key in ("DATETIME", "TIMESTAMP", "DATE")

    # --- what stands beside what ----------------------------------------------------------------

    def _relate(self, values: list[_Found]) -> None:
        """Note what is to be done about *values*, which are compared with each other."""
        column = next((v.columns[0].name for v in values if v.is_column), None)
        if column is None:
            self._mix(
                [p for v in values for p in v.columns], [p for v in values for p in v.functions]
            )
            return
        for value in values:
            if value.is_moment or value.is_column:
                self._moments += value.moments
            self._literals += [Beside(column, slot) for slot in value.literals]
            if value.terms:
                self._sums.append(Sum(column, value.terms))
        functions = [p for v in values if not v.is_moment for p in v.functions]
        self._mix([p for v in values for p in v.columns], functions)

    def _mix(self, columns: list[_Place], functions: list[_Place]) -> None:
        """Note time columns and time functions that have to be in the same unit."""
        if len(columns) * len(functions) > _PAIRS_MAX:
            self._mixtures.append(Mixture(columns[0].name, functions[0].name))
            return
        for column in columns:
            for function in functions:
                mixture = Mixture(column.name, function.name)
                unit_ns = self._counted(function)
                if unit_ns:
                    up, down = self._scale(function, -1)
                    column_up, column_down = self._scale(column, -1)
                    self._factors.append(
                        Factor(up + column_down, down + column_up, unit_ns, mixture)
                    )
                else:
                    self._mixtures.append(mixture)

    def _counted(self, function: _Place) -> int:
        """Return the nanoseconds of what a function counts since 1970, 0 where it does not."""
        if function.name == "UNIX_TIMESTAMP":
            return _SECOND_NS
        # TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), in any zone.
        keys = [token.key for token in self._tokens[function.start : function.end]]
        if keys[:2] == ["TIMESTAMPDIFF", "("] and keys[5:7] == [",", "UTC_TIMESTAMP"]:
            return UNIT_NS.get(keys[2], 0)
        return 0

    def _scale(
        self, place: _Place, outermost: int
    ) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
        """Return the literals that what stands there is multiplied and divided by.

        Groups around it count as well, but not that which begins at *outermost*, nor a query.
        """
        tokens = self._tokens
        up: list[Slot] = []
        down: list[Slot] = []
        start, end = place.start, place.end
        while start >= 0:
            while end + 1 < len(tokens) and tokens[end].key in ("*", "/", "DIV"):
                slot = tokens[end + 1].slot
                if not isinstance(slot, Slot):
                    break
                (up if tokens[end].key == "*" else down).append(slot)
                end += 2
            before = (
                tokens[start - 2].slot if start > 1 and tokens[start - 1].key == "*" else None
            )
            if isinstance(before, Slot):
                up.append(before)
            around = self._inside[start]
            if around < 0 or around == outermost or tokens[around].key != "(":
                break
            if tokens[around + 1].key in _QUERY_WORDS:
                break
            end = self._ends[around] + 1
            start = around
            if around and tokens[around - 1].is_name and tokens[around - 1].key not in _BORDERS:
                start = around - 1
        return tuple(up), tuple(down)


def _merged(values: Iterable[_Found]) -> _Found:
    """Return what a value is made of that is made of all *values*."""
    found = list(values)
    return _Found(
        tuple(place for value in found for place in value.columns),
        tuple(place for value in found for place in value.functions),
    )
