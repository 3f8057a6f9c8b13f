"""The queues as a table for a terminal. Pure: rows of `QUEUES` go in, as JSON has them, and lines come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamfrom.proxy.printable import printable


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


QueueRow: TypeAlias = "Mapping[str, Any]"

COUNTED: Final = ("sent", "retried", "acked")
UNKNOWN: Final = "-"
# A unit, and from which count on it is taken: four digits are read at a glance.
_COUNTS: Final = ((10**9, "G"), (10**6, "M"), (10**3, "k"))
# A unit, how many seconds it is, and from how many on it is taken.
_TIMES: Final = (("d", 86_400, 172_800), ("h", 3600, 7200), ("m", 60, 120))


@dataclass(frozen=True, slots=True)
class QueueSample:
    """What was told of all queues at *at_s* of some clock."""

    rows: Sequence[QueueRow]
    at_s: float


def table_lines(sample: QueueSample, before: QueueSample | None = None) -> list[str]:
    """Return a heading and a line for each queue.

    That of a queue that cannot be used ends with the reason, that of figures that lack a member with which.

    before: an earlier sample, from which on rates are told instead of totals.
    """
    if not sample.rows:
        return ["no message tables"]
    unit = "/s" if before else ""
    counted = [f"{name}{unit}" for name in COUNTED]
    heading = [
        "queue",
        "depth",
        "parked",
        "due",
        "flight",
        "oldest",
        "streams",
        *counted,
        "wait",
        "work",
    ]
    earlier = {_name(row): row for row in before.rows} if before else {}
    took_s = sample.at_s - before.at_s if before else 0.0
    lines = [[name.upper() for name in heading]]
    lines += [_cells(row, earlier.get(_name(row)), took_s) for row in sample.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    reasons = ["", *map(_reason, sample.rows)]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        + reason
        for cells, reason in zip(lines, reasons, strict=True)
    ]


def _reason(row: QueueRow) -> str:
    if row["error"]:
        return f"  {row['error']}"
    return f"  without {row['unanswered']}" if row["unanswered"] else ""


def _name(row: QueueRow) -> str:
    return printable(f"{row['keyspace']}.{row['queue']}")


def _cells(row: QueueRow, before: QueueRow | None, took_s: float) -> list[str]:
    about = "" if row["depth_is_exact"] else "~"
    depth = count_text(row["depth"])
    return [
        _name(row),
        depth if depth == UNKNOWN else f"{about}{depth}",
        count_text(row["parked"]),
        count_text(row["due"]),
        count_text(row["in_flight"]),
        time_text(row["oldest_due_s"]),
        count_text(row["streams"]),
        *(_counted(row, name, before, took_s) for name in COUNTED),
        time_text(row["due_to_sent_p99_s"]),
        time_text(row["sent_to_acked_p99_s"]),
    ]


def _counted(row: QueueRow, name: str, before: QueueRow | None, took_s: float) -> str:
    count = row[name]
    if took_s <= 0:
        return count_text(count)
    # A queue that was not there before, and a proxy that has started anew and counts from zero.
    if before is None or count is None or before[name] is None or count < before[name]:
        return UNKNOWN
    return count_text((count - before[name]) / took_s)


def count_text(count: float | None) -> str:
    """Return a count in at most five characters up to 10**12."""
    if count is None:
        return UNKNOWN
    for size, unit in _COUNTS:
        if count >= 10 * size:
            return f"{count // size:.0f}{unit}"
    return f"{count:.0f}" if count >= 10 or count == int(count) else f"{count:.1f}"


def time_text(seconds: float | None) -> str:
    """Return a time in its largest fitting unit."""
    if seconds is None:
        return UNKNOWN
    for unit, size_s, least_s in _TIMES:
        if seconds >= least_s:
            return f"{seconds / size_s:.0f}{unit}"
    if seconds >= 1:
        return f"{seconds:.0f}s" if seconds >= 10 else f"{seconds:.1f}s"
    return f"{seconds * 1000:.0f}ms"
