"""Format numbers, durations and moments for the report."""

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
# Usual steps of time, in seconds.
STEPS_S: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10800, 21600, 43200, _DAY_S, 2 * _DAY_S, 7 * _DAY_S, 28 * _DAY_S),
)


def count(value: float | None) -> str:
    """Format a whole number in groups of three digits."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def rate(per_s: float | None) -> str:
    """Format a number per second, or per minute, hour or day if that makes it one or more."""
    if not per_s:
        return UNKNOWN if per_s is None else "0"
    for seconds, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if per_s * seconds >= 1:
            return f"{short(per_s * seconds)}/{unit}"
    return f"{short(per_s * _DAY_S)}/day"


def short(value: float) -> str:
    """Format a number with about three digits: 1,234,567 is 1.23 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if value >= size:
            return f"{value / (1e3 if unit == ' k' else size):.3g}{unit}"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def duration(milliseconds: float | None) -> str:
    """Format a duration in its one or two largest units."""
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
    """Format *part* of *whole* in percent."""
    if not whole:
        return UNKNOWN
    percent = 100 * part / whole
    return f"{percent:.2g} %" if 0 < percent < 1 else f"{percent:.0f} %"


def moment(nanoseconds: int | None) -> str:
    """Format a time in UTC, to the second; a time outside the calendar stays a number."""
    if nanoseconds is None:
        return UNKNOWN
    try:
        return f"{datetime.fromtimestamp(nanoseconds // _SECOND_NS, UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return f"{nanoseconds} ns"


def bucket_ns(low_ns: int, high_ns: int, buckets_max: int = 120) -> int:
    """Return the smallest usual width that divides [low, high) into few enough windows."""
    wanted_s = (high_ns - low_ns) / _SECOND_NS / buckets_max
    return next((step for step in STEPS_S if step >= wanted_s), STEPS_S[-1]) * _SECOND_NS
