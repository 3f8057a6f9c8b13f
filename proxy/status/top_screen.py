"""What `streamfrom top` shows, and what its keys do. Pure: rows of the tables and keys go in, and lines come out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streamfrom.proxy.printable import printable
from streamfrom.proxy.status.queue_table import (
    UNKNOWN,
    QueueSample,
    count_text,
    table_lines,
    time_text,
)


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Row = Mapping[str, Any]

UP, DOWN, TOP = "\x1b[A", "\x1b[B", "\x1b[H"
QUIT: Final = frozenset({"q", "Q", "\x03", "\x04"})
_HELP: Final = (
    "1 queues  2 streams  3 shards  4 members  < > sort  r reverse  ↑ ↓ scroll  q quit"
)


class _TopColumn(NamedTuple):
    """A column of a table. key: of a row's value, which it is sorted by."""

    heading: str
    key: str
    show: Callable[[Any], str]


def _text(value: object) -> str:
    return UNKNOWN if value is None else printable(str(value))


def _yes(value: object) -> str:
    return UNKNOWN if value is None else "yes" if value else "NO"


_VIEWS: Final[Mapping[str, Sequence[_TopColumn]]] = {
    # Drawn by `table_lines`, which knows rates.
    "queues": [
        _TopColumn("queue", "queue", _text),
        _TopColumn("depth", "depth", count_text),
        _TopColumn("parked", "parked", count_text),
        _TopColumn("due", "due", count_text),
        _TopColumn("flight", "in_flight", count_text),
        _TopColumn("oldest", "oldest_due_s", time_text),
        _TopColumn("streams", "streams", count_text),
        _TopColumn("sent", "sent", count_text),
        _TopColumn("retried", "retried", count_text),
        _TopColumn("acked", "acked", count_text),
        _TopColumn("wait", "due_to_sent_p99_s", time_text),
        _TopColumn("work", "sent_to_acked_p99_s", time_text),
    ],
    "streams": [
        _TopColumn("id", "connection_id", _text),
        _TopColumn("user", "user", _text),
        _TopColumn("host", "host", _text),
        _TopColumn("keyspace", "keyspace", _text),
        _TopColumn("queue", "queue", _text),
        _TopColumn("open", "open_s", time_text),
        _TopColumn("sent", "sent", count_text),
        _TopColumn("holds", "held", count_text),
        _TopColumn("of", "prefetch", count_text),
        _TopColumn("since", "held_s", time_text),
        _TopColumn("full", "full_s", time_text),
    ],
    "shards": [
        _TopColumn("keyspace", "keyspace", _text),
        _TopColumn("shard", "shard", _text),
        _TopColumn("server", "server", _text),
        _TopColumn("up", "is_up", _yes),
        _TopColumn("lent", "pool_lent", count_text),
        _TopColumn("of", "pool_size", count_text),
        _TopColumn("waiting", "pool_waiting", count_text),
        _TopColumn("dispatched", "is_dispatched", _yes),
        _TopColumn("member", "member", _text),
        _TopColumn("trouble", "trouble", _text),
    ],
    "members": [
        _TopColumn("member", "member", _text),
        _TopColumn("version", "version", _text),
        _TopColumn("up", "uptime_s", time_text),
        _TopColumn("clients", "connections", count_text),
        _TopColumn("streams", "streams", count_text),
        _TopColumn("questions", "questions", count_text),
        _TopColumn("answers", "is_answering", _yes),
        _TopColumn("address", "address", _text),
        _TopColumn("error", "error", _text),
    ],
}
VIEWS: Final = tuple(_VIEWS)


@dataclass(slots=True)
class TopScreen:
    """What is looked at, and how it is sorted.

    view: the table that is shown.
    """

    view: str = VIEWS[0]
    _sorted_by: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VIEWS, 0))
    _is_down: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(VIEWS, False))
    _first: int = 0
    _rows: Sequence[Row] = ()
    _at_s: float = 0.0
    _before: QueueSample | None = None
    _fault: str = ""

    def told(self, view: str, rows: Sequence[Row], at_s: float) -> None:
        """Take in the rows of a table, as they were at *at_s* of some clock; of one that is not shown any more they are dropped."""
        if view != self.view:
            return
        if view == "queues" and self._rows:
            self._before = QueueSample(self._rows, self._at_s)
        self._rows, self._at_s, self._fault = rows, at_s, ""

    def failed(self, why: str) -> None:
        """Take in why nothing was told; what was told before stays."""
        self._fault = why

    def press(self, key: str) -> bool:
        """Do what a key says; return whether another table is to be asked for."""
        if key in {"1", "2", "3", "4", "\t"}:
            at = (VIEWS.index(self.view) + 1) % len(VIEWS) if key == "\t" else int(key) - 1
            if VIEWS[at] == self.view:
                return False
            self.view, self._rows, self._before, self._first = VIEWS[at], (), None, 0
            return True
        last = len(_VIEWS[self.view]) - 1
        if key in {"<", ">"}:
            by = self._sorted_by[self.view] + (1 if key == ">" else -1)
            self._sorted_by[self.view] = max(0, min(last, by))
            # The largest figures first, and names from A on.
            self._is_down[self.view] = self._column.show is not _text
        elif key in {"r", "R"}:
            self._is_down[self.view] = not self._is_down[self.view]
        elif key in {UP, DOWN, "k", "j"}:
            step = 1 if key in {DOWN, "j"} else -1
            self._first = max(0, min(len(self._rows) - 1, self._first + step))
        elif key == TOP:
            self._first = 0
        return False

    def lines(self, width: int, height: int) -> list[str]:
        """Return what a terminal of this size shows: at most *height* lines, none longer than *width*."""
        title = "  ".join(f"[{view}]" if view == self.view else view for view in VIEWS)
        way = "↓" if self._is_down[self.view] else "↑"
        heading, *table = self._table()
        room = max(1, height - 5)
        self._first = max(0, min(self._first, len(table) - room))
        shown = [
            f"streamfrom top   {title}   by {self._column.heading} {way}",
            _text(self._fault) if self._fault else "",
            heading,
            *table[self._first : self._first + room],
        ]
        shown += [""] * (height - 1 - len(shown)) + [_HELP]
        return [line[:width] for line in shown[:height]]

    @property
    def _column(self) -> _TopColumn:
        return _VIEWS[self.view][self._sorted_by[self.view]]

    def _table(self) -> list[str]:
        key = self._column.key
        # What is not known stands last, whichever way.
        known = sorted(
            (row for row in self._rows if row[key] is not None),
            key=lambda row: row[key],
            reverse=self._is_down[self.view],
        )
        rows = [*known, *(row for row in self._rows if row[key] is None)]
        if self.view == "queues":
            return table_lines(QueueSample(rows, self._at_s), self._before)
        columns = _VIEWS[self.view]
        cells = [[column.heading.upper() for column in columns]]
        cells += [[column.show(row[column.key]) for column in columns] for row in rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return [
            "  ".join(
                cell.ljust(width) if column.show is _text else cell.rjust(width)
                for cell, width, column in zip(line, widths, columns, strict=True)
            ).rstrip()
            for line in cells
        ]
