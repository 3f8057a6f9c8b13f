"""Turn moments next to time columns into nanoseconds, as planned by `moment_reader`; refuse values that cannot be moments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import (
    ListSlot,
    Opaque,
    Param,
    Shape,
    Slot,
    Statement,
    Value,
)
from streamfrom.sqlparse_ext.text.lexer import Edit, locate
from streamfrom.sqlparse_ext.text.nodes import SECOND_NS
from streamfrom.sqlparse_ext.writes.moment_reader import MomentReader
from streamfrom.sqlparse_ext.writes.times import (
    NO_MOMENTS,
    Literals,
    MomentPlan,
    Place,
    Shifts,
    TimeColumns,
    number_of,
    time_words,
)


# A longer one takes more than some 10 ms to read, in which no other client is served. It is
# only searched for a time column and a time function, without its literals.
_TEMPLATE_BYTES_MAX: Final = 16 << 10
# 1973 in nanoseconds: microseconds since 1970 reach it in the year 5138.
NS_MIN: Final = 10**17
# No useful interval or product has more digits: Fraction would write out 1e999999.
_INTERVAL_DIGITS_MAX: Final = 20
_EXPONENT_MAX: Final = 30
# Servers refuse aliases of more than 256 characters.
_ALIAS_BYTES_MAX: Final = 200


@lru_cache(maxsize=2048)
def moment_plan(shape: Shape, columns: TimeColumns) -> MomentPlan:
    """Return the plan for the moments in statements of *shape*: once for a shape."""
    column, function = time_words(shape.template, columns.names)
    if not column and not columns.target:
        return NO_MOMENTS
    is_long = len(shape.template) > _TEMPLATE_BYTES_MAX
    plan = None if is_long else MomentReader(shape.template, columns).plan()
    if plan is not None:
        return plan
    return _unread(column or ("" if is_long else min(columns.names)), function)


@lru_cache(maxsize=2048)
def value_plan(template: bytes, column: str) -> MomentPlan:
    """Return the plan for one value, with this template, that *column* is set to."""
    names = frozenset({column})
    plan = MomentReader(template, TimeColumns(names)).plan_of_value(column)
    return _unread(column, time_words(template, names)[1]) if plan is None else plan


def _unread(column: str, function: str) -> MomentPlan:
    """Return the plan for an unread text: a time column and a time function in it are refused."""
    if not column or not function:
        return NO_MOMENTS
    return MomentPlan(mixtures=((Place(column, is_column=True), Place(function)),))


def moment_edits(plan: MomentPlan, statement: Statement, now_ns: int) -> list[Edit]:
    """Return the edits of the template that turn moments into nanoseconds; *now_ns* is the present moment.

    Raises Unsupported for an interval whose amount is not exact here.
    """
    edits = []
    for start, end, shifts, is_shift in plan.moments:
        ns = sum(_shift_ns(shifts, statement), 0 if is_shift else now_ns)
        edits.append(Edit(start, end, b"%d" % ns if ns >= 0 else b"(%d)" % ns))
    borders = [border for each in plan.named for border in each]
    places = locate(statement.sql, statement.mode, borders) if borders else []
    for (_, end), first, last in zip(plan.named, places[::2], places[1::2], strict=True):
        name = statement.sql[first:last]
        if len(name) <= _ALIAS_BYTES_MAX:
            edits.append(Edit(end, end, b" AS `%b`" % name.replace(b"`", b"``")))
    return edits


def _shift_ns(shifts: Shifts, statement: Statement) -> Iterator[int]:
    for slot, unit_ns in shifts:
        amount = _number(slot, statement)
        if (
            amount is None
            or Decimal(amount).adjusted() >= _INTERVAL_DIGITS_MAX
            # The server rounds 1.5 MINUTE in its own way.
            or (amount % 1 and abs(unit_ns) != SECOND_NS)
        ):
            raise Unsupported(
                "an INTERVAL for a time column that is not a whole number (of seconds, a"
                " decimal); write the number itself"
            )
        yield int(amount * unit_ns)


def check_moments(plan: MomentPlan, statement: Statement) -> None:
    """Raise Unsupported if *statement*, of the plan's shape, mixes units of time, or as `check_literals`."""
    for places in plan.mixtures:
        scales = {_scale(place, statement) for place in places}
        if len(scales) > 1 or None in scales:
            column = next(place.name for place in places if place.is_column)
            function = next(place.name for place in places if not place.is_column)
            raise refusal(column, function)
    check_literals(plan, statement)


def check_literals(plan: MomentPlan, statement: Statement) -> None:
    """Raise Unsupported if a literal or a bound value of *statement*, of the plan's shape, is no number of nanoseconds."""
    for column, literals, is_given in plan.literals:
        for value in _values(literals, statement):
            check_value(value, column, is_given=is_given)


def _values(literals: Literals, statement: Statement) -> Iterable[Value | Opaque]:
    """Return the values of one literal, parameter or list, or the sum of several literals."""
    ((sign, factors), *others) = literals
    if sign == 1 and len(factors) == 1 and not others:
        return statement.values(factors) or ()
    products = [(sign, _product(factors, statement)) for sign, factors in literals]
    known = [sign * product for sign, product in products if product is not None]
    return [int(sum(known))] if len(known) == len(products) else []


def refusal(column: str, function: str) -> Unsupported:
    """Return the error for a column and a function that must not be combined."""
    return Unsupported(
        f"{function} here with {column}, which holds nanoseconds since 1970; write"
        " NOW() or NOW() + INTERVAL n SECOND, MINUTE, HOUR, DAY or WEEK as the whole value that it"
        " is compared with or given, or UNIX_TIMESTAMP('2026-01-31 12:00:00') * 1000000000"
    )


def check_value(value: Value | Opaque, column: str, *, is_given: bool) -> None:
    """Raise Unsupported for a value that is next to *column*, or that it is set to, by mistake.

    Seconds, milliseconds and microseconds since 1970, and a date as a number, are all nanoseconds
    of the first days of 1970. A value of less than a second, such as 0 and 1, is taken as intended, except for a time_acked that
    is set to it: clients mean 0 for a message that is not acknowledged, and 1 for one that is. Both would be acks of 1970, which
    are purged at once.
    """
    if value is None or isinstance(value, Opaque):
        return
    number = number_of(value)
    if number is None:
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        raise Unsupported(
            f"{text[:40]!r} for {column}, which holds nanoseconds since 1970; write"
            " NOW() + INTERVAL n SECOND, or UNIX_TIMESTAMP('2026-01-31 12:00:00') * 1000000000"
        )
    is_ack = is_given and column == "time_acked"
    if number < NS_MIN and (is_ack or number >= SECOND_NS):
        raise Unsupported(
            f"{number} for {column}, which holds nanoseconds since 1970: that would be a moment of"
            " 1970; write NOW(), seconds * 1000000000, or NULL for none"
        )


def _number(slot: Slot | Param | ListSlot, statement: Statement) -> Decimal | int | None:
    """Return the number of a literal or a bound value; None if it is no plain number."""
    is_bound = isinstance(slot, Param)
    return number_of(statement.argument(slot) if is_bound else statement.value(slot))


def _scale(place: Place, statement: Statement) -> Fraction | None:
    """Return an expression's unit in nanoseconds, as a fraction; None if it is not known."""
    up, down = _product(place.up, statement), _product(place.down, statement)
    return up / (down * place.unit_ns) if up and down and place.unit_ns else None


def _product(
    factors: Iterable[Slot | Param | ListSlot], statement: Statement
) -> Fraction | None:
    """Return the product of literals; None if one is no plain number."""
    product = Fraction(1)
    for slot in factors:
        number = _number(slot, statement)
        if number is None or abs(Decimal(number).adjusted()) > _EXPONENT_MAX:
            return None
        product *= Fraction(number)
    return product
