"""Moments next to time columns become nanoseconds, as `moment_reader` plans it; what can be none is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import Opaque, Shape, Slot, Statement, Value
from streamfrom.sqlparse_ext.text.lexer import Edit, locate
from streamfrom.sqlparse_ext.text.tokens import statement_tokens
from streamfrom.sqlparse_ext.writes.moment_reader import MomentReader
from streamfrom.sqlparse_ext.writes.times import (
    NO_MOMENTS,
    SECOND_NS,
    WORD,
    Mixture,
    MomentPlan,
    TimeColumns,
    names_function,
    number_of,
)


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.writes.times import LiteralSum

# A longer one takes more than some 10 ms to read, in which no other client is served: of that it is
# asked only whether it has a time column and a time function, literals left out.
_TEMPLATE_BYTES_MAX: Final = 16 << 10
# 1973 in nanoseconds: microseconds since 1970 reach it in the year 5138.
NS_MIN: Final = 10**17
_EXPONENT_MAX: Final = 30
# Servers refuse aliases of more than 256 characters.
_ALIAS_BYTES_MAX: Final = 200


@lru_cache(maxsize=2048)
def moment_plan(shape: Shape, columns: TimeColumns) -> MomentPlan:
    """Return what is to be done about the moments in statements of *shape*: once for a shape."""
    template = shape.template
    if len(template) > _TEMPLATE_BYTES_MAX:
        times = {word.decode() for word in WORD.findall(template.lower())} & columns.names
        function = names_function(template)
        if not times or not function:
            return NO_MOMENTS
        return MomentPlan(mixtures=(Mixture(min(times), function),))
    return MomentReader(statement_tokens(shape.template), shape.template, columns).plan()


@lru_cache(maxsize=2048)
def value_plan(template: bytes, column: str) -> MomentPlan:
    """Return what is to be done about one value, with this template, that *column* is given."""
    columns = TimeColumns(frozenset({column}))
    return MomentReader(statement_tokens(template), template, columns).plan_of_value(column)


def moment_edits(plan: MomentPlan, statement: Statement, now_ns: int) -> list[Edit]:
    """Return the edits of the template that make moments nanoseconds; *now_ns* is the one moment.

    Raises Unsupported for an interval whose amount is none that is exact here.
    """
    edits = []
    for start, end, moment, is_shift in plan.moments:
        ns = moment.ns(statement, 0 if is_shift else now_ns)
        if ns is None:
            raise Unsupported(
                "an INTERVAL for a time column that is not a whole number (of seconds, a"
                " decimal); write the number itself"
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
        if not mixture.unit_ns or (
            _ratio(mixture.up, mixture.down, statement) != mixture.unit_ns
        ):
            raise refusal(mixture)
    check_literals(plan, statement)
    for each in plan.sums:
        check_value(_total(each, statement), each.column, is_given=each.is_given)


def check_literals(plan: MomentPlan, statement: Statement) -> None:
    """Raise Unsupported where a literal or a bound value of *statement*, of the plan's shape, is no number of nanoseconds."""
    for column, operand, is_given in plan.literals:
        for value in statement.values((operand,)) or ():
            check_value(value, column, is_given=is_given)


def _total(each: LiteralSum, statement: Statement) -> int | None:
    total = Fraction(0)
    for sign, slots in each.terms:
        product = _ratio(slots, (), statement)
        if product is None:
            return None
        total += sign * product
    return int(total)


def refusal(mixture: Mixture) -> Unsupported:
    """Return the error for what stands together and must not."""
    return Unsupported(
        f"{mixture.function} here with {mixture.column}, which holds nanoseconds since 1970; write"
        " NOW() or NOW() + INTERVAL n SECOND, MINUTE, HOUR, DAY or WEEK as the whole value that it"
        " is compared with or given, or UNIX_TIMESTAMP('2026-01-31 12:00:00') * 1000000000"
    )


def check_value(value: Value | Opaque, column: str, *, is_given: bool) -> None:
    """Raise Unsupported for a value that stands next to *column*, or that it is given, by mistake.

    Seconds, milliseconds and microseconds since 1970, and a date as a number, are all nanoseconds
    of the first days of 1970. What is less than a second, as 0 and 1, is meant as it is, but for a time_acked that
    is given it: 0 is meant for a message that is not acknowledged, and 1 for one that is. Both would be acks of 1970, which
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
    if SECOND_NS <= number < NS_MIN:
        raise Unsupported(
            f"{number} for {column}, which holds nanoseconds since 1970: that would be a moment of"
            " 1970; write NOW(), or seconds * 1000000000"
        )
    if is_given and column == "time_acked" and number < NS_MIN:
        raise Unsupported(
            f"{number} for time_acked, which holds nanoseconds since 1970: that would be a moment of"
            " 1970; write NOW() to acknowledge, NULL for a message that is not acknowledged"
        )


def _ratio(
    up: tuple[Slot, ...], down: tuple[Slot, ...], statement: Statement
) -> Fraction | None:
    """Return the product of *up* through that of *down*; None where it is no plain number."""
    ratio = Fraction(1)
    for slots, is_up in ((up, True), (down, False)):
        for slot in slots:
            value = statement.value(slot)
            number = number_of(value)
            # No more digits than a product of use has: Fraction would write out 1e999999.
            if number is None or abs(Decimal(number).adjusted()) > _EXPONENT_MAX:
                return None
            if not (number or is_up):
                return None
            ratio = ratio * Fraction(number) if is_up else ratio / Fraction(number)
    return ratio
