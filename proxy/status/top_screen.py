"""What `streamfrom top` shows, and what its keys do. Pure: rows of the tables and keys go in, and lines come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.status.terminal_tables import VIEWS, TableSample, table_lines, text_of


if TYPE_CHECKING:
    from streamfrom.proxy.status.terminal_tables import StatusRecord, TerminalColumn

UP, DOWN, TOP = "\x1b[A", "\x1b[B", "\x1b[H"
QUIT: Final = frozenset({"q", "Q", "\x03", "\x04"})
_HELP: Final = (
    "1 queues  2 streams  3 shards  4 members  < > sort  r reverse  ↑ ↓ scroll  q quit"
)


_NAMES: Final = tuple(VIEWS)


@dataclass(slots=True)
class TopScreen:
    """What is looked at, and how it is sorted."""

    view: str = _NAMES[0]  # the table that is shown
    _sorted_by: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VIEWS, 0))
    _is_down: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(VIEWS, False))
    _first: int = 0
    _rows: Sequence[StatusRecord] = ()
    _at_s: float = 0.0
    _before: TableSample | None = None
    _fault: str = ""

    def told(self, view: str, rows: Sequence[StatusRecord], at_s: float) -> None:
        """Take in the rows of a table, as they were at *at_s* of some clock; of one that is not shown any more they are dropped."""
        if view != self.view:
            return
        if view == "queues" and self._rows:
            self._before = TableSample(self._rows, self._at_s)
        self._rows, self._at_s, self._fault = rows, at_s, ""

    def failed(self, why: str) -> None:
        """Take in why there was no answer; the last answer stays."""
        self._fault = why

    def press(self, key: str) -> bool:
        """Do what a key says; return whether another table is to be asked for."""
        if key in {"1", "2", "3", "4", "\t"}:
            at = (_NAMES.index(self.view) + 1) % len(_NAMES) if key == "\t" else int(key) - 1
            if _NAMES[at] == self.view:
                return False
            self.view, self._rows, self._before, self._first = _NAMES[at], (), None, 0
            return True
        last = len(VIEWS[self.view]) - 1
        if key in {"<", ">"}:
            by = self._sorted_by[self.view] + (1 if key == ">" else -1)
            self._sorted_by[self.view] = max(0, min(last, by))
            # The largest figures first, and names from A on.
            self._is_down[self.view] = self._column.show is not text_of
        elif key in {"r", "R"}:
            self._is_down[self.view] = not self._is_down[self.view]
        elif key in {UP, DOWN, "k", "j"}:
            step = 1 if key in {DOWN, "j"} else -1
            self._first = max(0, min(len(self._rows) - 1, self._first + step))
        elif key == TOP:
            self._first = 0
        return False

    def lines(self, width: int, height: int) -> list[str]:
        """Return what a terminal of this size shows: at most *height* lines, none wider than *width*."""
        from rich import cells

        title = "  ".join(f"[{view}]" if view == self.view else view for view in VIEWS)
        way = "↓" if self._is_down[self.view] else "↑"
        heading, *table = self._table()
        room = max(1, height - 5)
        self._first = max(0, min(self._first, len(table) - room))
        shown = [
            f"streamfrom top   {title}   by {self._column.heading} {way}",
            text_of(self._fault) if self._fault else "",
            heading,
            *table[self._first : self._first + room],
        ]
        shown += [""] * (height - 1 - len(shown)) + [_HELP]
        return [cells.set_cell_size(line, width).rstrip() for line in shown[:height]]

    @property
    def _column(self) -> TerminalColumn:
        return VIEWS[self.view][self._sorted_by[self.view]]

    def _table(self) -> list[str]:
        key = self._column.key
        # What is not known stands last, whichever way.
        known = sorted(
            (row for row in self._rows if row[key] is not None),
            key=lambda row: row[key],
            reverse=self._is_down[self.view],
        )
        rows = [*known, *(row for row in self._rows if row[key] is None)]
        return table_lines(self.view, TableSample(rows, self._at_s), self._before)
