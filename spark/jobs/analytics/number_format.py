"""How the report writes numbers, durations and moments, and which of them an axis names."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final


UNKNOWN: Final = "—"
_SECOND_MS: Final = 1000.0
_MINUTE_MS: Final = 60 * _SECOND_MS
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
_UNITS_MS: Final = (
    *((_DAY_MS, "d"), (_HOUR_MS, "h")),
    *((_MINUTE_MS, "min"), (_SECOND_MS, "s")),
)
_SECOND_NS: Final = 10**9
_DAY_S: Final = 86400
_LONG_DAYS: Final = 100
# Steps that people count time in, in seconds.
STEPS_S: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10800, 21600, 43200, _DAY_S, 2 * _DAY_S, 7 * _DAY_S, 28 * _DAY_S),
)
# Steps of an axis of numbers.
VALUES: Final = tuple(n * 10.0**power for power in range(-9, 13) for n in (1, 2, 2.5, 5))
# And ticks of an axis of durations, on which each is several times the one before.
LADDER_MS: Final = (
    *(0.001, 0.01, 0.1, 1.0, 10.0, 100.0),
    *(_SECOND_MS, 10 * _SECOND_MS, _MINUTE_MS, 10 * _MINUTE_MS, _HOUR_MS, 6 * _HOUR_MS),
    *(_DAY_MS * 10**power for power in range(7)),
)


def count(value: float | None) -> str:
    """Return a whole number in groups of three digits."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def rate(per_s: float | None) -> str:
    """Return a number a second, or a minute, hour or day where that makes it one or more."""
    if not per_s:
        return UNKNOWN if per_s is None else "0"
    for seconds, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if per_s * seconds >= 1:
            return f"{short(per_s * seconds)}/{unit}"
    return f"{short(per_s * _DAY_S)}/day"


def short(value: float) -> str:
    """Return about three digits of a number: 1,234,567 is 1.23 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if value >= size:
            return f"{value / (1e3 if unit == ' k' else size):.3g}{unit}"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def duration(milliseconds: float | None) -> str:
    """Return a duration in the one or two units that a person would say."""
    if not milliseconds:
        return UNKNOWN if milliseconds is None else "0"
    if milliseconds < 999.5:
        return f"{milliseconds:.3g} ms"
    if milliseconds < _MINUTE_MS:
        return f"{max(milliseconds, _SECOND_MS) / _SECOND_MS:.3g} s"
    if milliseconds >= _LONG_DAYS * _DAY_MS:
        return f"{milliseconds / _DAY_MS:,.0f} d"
    large, small = next(pair for pair in pairwise(_UNITS_MS) if milliseconds >= pair[0][0])
    many, rest = divmod(milliseconds, large[0])
    more = int(rest // small[0])
    return f"{int(many):,} {large[1]}" + (f" {more} {small[1]}" if more else "")


def share(part: float, whole: float) -> str:
    """Return *part* of *whole* in percent."""
    if not whole:
        return UNKNOWN
    percent = 100 * part / whole
    return f"{percent:.2g} %" if 0 < percent < 1 else f"{percent:.0f} %"


def moment(nanoseconds: int | None) -> str:
    """Return a time in UTC, to the second; what no calendar holds stays a number."""
    if nanoseconds is None:
        return UNKNOWN
    try:
        return f"{datetime.fromtimestamp(nanoseconds // _SECOND_NS, UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return f"{nanoseconds} ns"


def bucket_ns(low_ns: int, high_ns: int, buckets_max: int = 120) -> int:
    """Return the smallest width that people count time in of which [low, high) has few enough."""
    wanted_s = (high_ns - low_ns) / _SECOND_NS / buckets_max
    return next((step for step in STEPS_S if step >= wanted_s), STEPS_S[-1]) * _SECOND_NS


def time_ticks(low_ns: int, high_ns: int, ticks_max: int) -> "list[tuple[int, str]]":
    """Return whole times within [low, high] and what an axis says there."""
    step_s = bucket_ns(low_ns, high_ns, ticks_max) // _SECOND_NS
    form = "%b %d" if step_s >= _DAY_S else "%H:%M" if step_s >= 60 else "%H:%M:%S"
    first_s = -(-low_ns // _SECOND_NS // step_s) * step_s
    return [
        (at_s * _SECOND_NS, f"{datetime.fromtimestamp(at_s, UTC):{form}}")
        for at_s in range(first_s, high_ns // _SECOND_NS + 1, step_s)
    ]


def ticks(highest: float, ticks_max: int = 5) -> list[float]:
    """Return multiples of one of `VALUES`, from 0 to the first that is not below *highest*."""
    if highest <= 0:
        return [0.0, 1.0]
    wanted = highest / (ticks_max - 1) * 0.999
    step = next((step for step in VALUES if step >= wanted), VALUES[-1])
    return [step * n for n in range(math.ceil(highest / step * 0.999) + 1)]


def decades(values: "Sequence[float]", ticks_max: int = 8) -> list[float]:
    """Return durations in milliseconds that people say, about ten times one another, around all *values* above zero.

    At least two, and at most *ticks_max*, or one more.
    """
    seen = [value for value in values if value > 0] or [1.0]
    low = max((n for n, rung in enumerate(LADDER_MS) if rung <= min(seen)), default=0)
    top = len(LADDER_MS) - 1
    high = next((n for n, rung in enumerate(LADDER_MS) if rung >= max(seen)), top)
    high = max(high, low + 1)
    each = -(-(high - low) // ticks_max)
    return [*LADDER_MS[low:high:each], LADDER_MS[high]]
