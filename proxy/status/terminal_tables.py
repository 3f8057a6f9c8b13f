"""The tables for a terminal, made from rows as in JSON. Pure.

rich lays them out, because it knows how many columns of a terminal a character takes. It is imported only when a table is
made, because the import takes a tenth of a second.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from streamfrom.proxy.printable import printable
from streamfrom.proxy.status.queue_figures import FIGURES, Unit


StatusRecord: TypeAlias = "Mapping[str, Any]"

UNKNOWN: Final = "-"
# Wider than any table: the terminal wraps it, or `top` cuts it.
_WIDTH: Final = 10_000
# A unit and the count from which it is used: four digits are read at a glance.
_COUNTS: Final = ((10**9, "G"), (10**6, "M"), (10**3, "k"))
# A unit, its length in seconds, and the time from which it is used.
_TIMES: Final = (("d", 86_400, 172_800), ("h", 3600, 7200), ("m", 60, 120))


@dataclass(frozen=True, slots=True)
class TableSample:
    """The rows of a table at *at_s* of some clock."""

    rows: Sequence[StatusRecord]
    at_s: float


class TerminalColumn(NamedTuple):
    """A column of a table."""

    heading: str
    key: str  # the key of a row's value; rows are sorted by it
    show: Callable[[Any], str]
    is_total: bool = False  # counted since the start, so that a second sample gives a rate


def text_of(value: object) -> str:
    """Return *value* as text with control characters escaped."""
    return UNKNOWN if value is None else printable(str(value))


def _yes(value: object) -> str:
    return UNKNOWN if value is None else "yes" if value else "NO"


def count_text(count: float | None) -> str:
    """Return a count in at most five characters, up to 10**12."""
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


# The format of each unit, and whether a second sample gives a rate.
_SHOWS: Final = {
    Unit.COUNT: (count_text, False),
    Unit.TOTAL: (count_text, True),
    Unit.SECONDS: (time_text, False),
}


def _plain(show: Callable[[Any], str], *keys: str) -> list[TerminalColumn]:
    """Return columns whose headings are their keys."""
    return [TerminalColumn(key.replace("_", " "), key, show) for key in keys]


VIEWS: Final[Mapping[str, Sequence[TerminalColumn]]] = {
    "queues": [
        *_plain(text_of, "queue"),
        *(
            TerminalColumn(each.heading, each.name, *_SHOWS[each.unit])
            for each in FIGURES
            if each.heading
        ),
    ],
    "streams": [
        TerminalColumn("id", "connection_id", text_of),
        *_plain(text_of, "user", "host", "keyspace", "queue"),
        TerminalColumn("open", "open_s", time_text),
        *_plain(count_text, "delivered", "unacked", "prefetch"),
        TerminalColumn("oldest", "oldest_unacked_age_s", time_text),
        TerminalColumn("stalled", "stalled_s", time_text),
    ],
    "shards": [
        *_plain(text_of, "keyspace", "shard", "server"),
        TerminalColumn("up", "is_up", _yes),
        *_plain(count_text, "pool_in_use", "pool_size", "pool_waiters"),
        TerminalColumn("dispatched", "is_dispatched", _yes),
        *_plain(text_of, "member", "last_error"),
    ],
    "members": [
        *_plain(text_of, "member", "version"),
        TerminalColumn("up", "uptime_s", time_text),
        TerminalColumn("clients", "connections", count_text),
        *_plain(count_text, "streams", "questions"),
        TerminalColumn("answers", "is_answering", _yes),
        *_plain(text_of, "address", "error"),
    ],
}


def table_lines(view: str, sample: TableSample, before: TableSample | None = None) -> list[str]:
    """Return a heading and one line per row, at full width.

    The line of a queue that cannot be used ends with the reason; that of incomplete figures ends with the missing members.

    before: an earlier sample, used to show rates instead of totals.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if view == "queues" and not sample.rows:
        return ["no message tables"]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in VIEWS[view]:
        unit = "/s" if column.is_total and before else ""
        table.add_column(
            f"{column.heading}{unit}".upper(),
            justify="left" if column.show is text_of else "right",
            no_wrap=True,
        )
    table.add_column(no_wrap=True)
    earlier = {_name(row): row for row in before.rows} if before and view == "queues" else {}
    took_s = sample.at_s - before.at_s if before else 0.0
    for row in sample.rows:
        was = earlier.get(_name(row)) if earlier else None
        cells = [_cell(view, column, row, was, took_s) for column in VIEWS[view]]
        table.add_row(*map(Text, [*cells, _reason(row) if view == "queues" else ""]))
    out = io.StringIO()
    Console(file=out, width=_WIDTH, color_system=None).print(table)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def _cell(
    view: str,
    column: TerminalColumn,
    row: StatusRecord,
    before: StatusRecord | None,
    took_s: float,
) -> str:
    value = row[column.key]
    if view == "queues" and column.key == "queue":
        return _name(row)
    if column.is_total and took_s > 0:
        # A new queue, or a proxy that has restarted and counts from zero.
        was = None if before is None else before[column.key]
        return (
            UNKNOWN
            if was is None or value is None or value < was
            else count_text((value - was) / took_s)
        )
    shown = column.show(value)
    return (
        f"~{shown}"
        if column.key == "depth" and not row["depth_is_exact"] and value is not None
        else shown
    )


def _reason(row: StatusRecord) -> str:
    if row["error"]:
        return text_of(row["error"])
    return f"without {text_of(row['unanswered'])}" if row["unanswered"] else ""


def _name(row: StatusRecord) -> str:
    return printable(f"{row['keyspace']}.{row['queue']}")
