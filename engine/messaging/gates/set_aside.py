"""The rows of one shard that its server refuses to write, and when each is tried again. Pure: no clock, no I/O.

These rows are left unchanged. Until a row is tried again its message waits as a timer in the shard's queue, and polls of it are
ignored, unless its priority or time have changed. It is tried again after a second, then two, doubling
to ten minutes, and at once when a statement names it.

This costs nothing while no row is set aside. SET_ASIDE_MAX rows are remembered. Rows that are refused beyond that are tried
again after UNLISTED_PAUSE_NS, or when the next poll shows them; others wait behind them then, but are written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message import MessageKey, Refused, Tried


SET_ASIDE_MAX: Final = 10_000
PAUSE_FIRST_NS: Final = 10**9
PAUSE_LAST_NS: Final = 600 * 10**9
UNLISTED_PAUSE_NS: Final = 10 * 10**9


@dataclass(slots=True)
class SetAsideRow:
    """A row that the server refuses to write.

    tried: the last kind of write.
    error: the server's message.
    since_ns: when it was refused first.
    next_ns: when it is tried again.
    tries: how often it was refused.
    """

    tried: Tried
    error: str
    since_ns: int
    next_ns: int = 0
    tries: int = 0


class SetAside:
    """The rows of one shard that are set aside, by id.

    rows: all of them, the first refused at the front.
    timers: the keys of the messages among them that wait to be claimed, due when they are tried again. The shard's queue
        has the same dictionary.
    """

    def __init__(self, timers: dict[bytes, MessageKey]) -> None:
        self.rows: dict[bytes, SetAsideRow] = {}
        self.timers: Final = timers
        # Priority and time of the messages in `timers`, as a poll showed them.
        self._seen: dict[bytes, tuple[int, int]] = {}
        self._all_ns = 0

    def __len__(self) -> int:
        return len(self.rows)

    def refuse(
        self, refused: Mapping[bytes, Refused], now_ns: int
    ) -> list[tuple[bytes, SetAsideRow]]:
        """Set rows aside, or extend their pause; return the new ones."""
        new = []
        for ident, (tried, error) in refused.items():
            row = self.rows.get(ident)
            if row is None:
                if len(self.rows) >= SET_ASIDE_MAX:
                    continue
                row = self.rows[ident] = SetAsideRow(tried, error, now_ns)
                new.append((ident, row))
            row.tried, row.error = tried, error
            row.next_ns = now_ns + (PAUSE_FIRST_NS << min(row.tries, 10))
            row.next_ns = min(row.next_ns, now_ns + PAUSE_LAST_NS)
            row.tries += 1
        return new

    def next_ns(self, ident: bytes, now_ns: int) -> int:
        """Return when a row that was just refused is tried again."""
        row = self.rows.get(ident)
        return now_ns + UNLISTED_PAUSE_NS if row is None else row.next_ns

    def wait(self, key: MessageKey, now_ns: int) -> MessageKey:
        """Postpone a message that could not be claimed; return its timer."""
        timer = key._replace(time_next_ns=self.next_ns(key.id, now_ns))
        if key.id in self.rows:
            self.timers[key.id] = timer
            self._seen.pop(key.id, None)
        return timer

    def over(self, idents: Iterable[bytes]) -> None:
        """Forget rows that were written after all, or are gone."""
        if self.rows:
            for ident in idents:
                if self.rows.pop(ident, None) is not None:
                    self._expect(ident)

    def clock_set_back(self, by_ns: int) -> None:
        """Try rows again after the same pauses by the new clock."""
        for row in self.rows.values():
            row.next_ns -= by_ns
        for ident, timer in self.timers.items():
            self.timers[ident] = timer._replace(time_next_ns=timer.time_next_ns - by_ns)
        self._all_ns -= by_ns

    def changed(self, idents: Iterable[bytes], now_ns: int) -> list[bytes]:
        """Try rows again at once that a client may have changed; return those of *idents* that are set aside."""
        if not self.rows:
            return []
        known = [ident for ident in idents if ident in self.rows]
        for ident in known:
            self.rows[ident].next_ns = now_ns
            self._expect(ident)
        return known

    def may_try_all(self, now_ns: int) -> bool:
        """Return whether all rows may be tried again at once: not twice within PAUSE_FIRST_NS, however many statements want it."""
        may = bool(self.rows) and now_ns >= self._all_ns
        if may:
            self._all_ns = now_ns + PAUSE_FIRST_NS
        return may

    def _expect(self, ident: bytes) -> None:
        self.timers.pop(ident, None)
        self._seen.pop(ident, None)

    def polled(self, keys: Iterable[MessageKey], now_ns: int) -> None:
        """Trust a poll of messages whose rows have changed since the one before."""
        if not self.timers:
            return
        others = []
        for key in keys:
            if key.id in self.timers:
                value = key.priority, key.time_next_ns
                if self._seen.setdefault(key.id, value) != value:
                    others.append(key.id)
        self.changed(others, now_ns)

    def left_out(self, tried: Tried, now_ns: int) -> list[bytes]:
        """Return the rows whose next try is later, of those for which *tried* was refused."""
        return [
            ident
            for ident, row in self.rows.items()
            if row.tried is tried and row.next_ns > now_ns
        ]

    def keep(self, idents: Collection[bytes]) -> None:
        """Forget all except *idents*: another process dispatches, and finds the others without help."""
        self.over([ident for ident in self.rows if ident not in idents])
