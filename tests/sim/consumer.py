"""Receivers of a small world: they ack, forget to ack, dawdle, and leave."""

from __future__ import annotations

import asyncio
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from streamfrom.engine.messaging.streams.prefetch_window import FIRST


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message import ClaimedRow
    from tests.sim.world import World


SECOND_NS = 10**9
# The loop runs a timer that is due within its clock's resolution.
CLOCK_S = 1e-6


@dataclass(eq=False)
class Stream:
    """A client's description of its stream; a receiver adds the behaviour."""

    id: int = 1
    shards: frozenset[str] | None = None
    columns: tuple[str, ...] = ("id", "message")
    prefetch: int | None = None
    connection_id: int = 1
    rows_max: int | None = None
    window_first: int = FIRST
    keys: frozenset[bytes] | None = None


@dataclass(eq=False)
class Consumer(Stream):
    """A receiver that behaves like real clients."""

    _: KW_ONLY
    world: World
    proxy: int
    polite: bool = False  # receives and acks everything, after the trouble
    unsent: tuple[ClaimedRow, ...] = ()
    held: dict[bytes, tuple[int, int]] = field(default_factory=dict)  # id → epoch, lease
    is_busy: bool = False
    has_left: bool = False
    ended: Exception | None = None

    def deliver(self, rows):
        world = self.world
        world.check_delivery(self, rows)
        if self.is_busy:
            # Rows of other dispatchers arrive whether it is ready or not.
            self.unsent += tuple(rows)
            return False
        if not self.polite and world.dice.random() < 0.3:
            # The socket is full: a moment later it takes them, unless the consumer leaves.
            self.unsent, self.is_busy = tuple(rows), True
            world.spawn(self._take_later())
            return False
        world.sent(self, rows)
        return True

    def end(self, error):
        self.ended = error
        self.unsent = ()

    def finish(self):
        raise AssertionError

    async def _take_later(self):
        await asyncio.sleep(self.world.dice.uniform(0, 3))
        if not self.has_left and self.ended is None:
            rows, self.unsent, self.is_busy = self.unsent, (), False
            self.world.sent(self, rows)
            self.world.registries[self.proxy].streams.ready(self)

    def leave(self):
        if not self.has_left:
            self.has_left = True
            self.world.given_back(self.unsent)
            registry = self.world.registries[self.proxy]
            registry.streams.detach(self, self.unsent)
            has_left = self.world.dice.random() < 0.8
            registry.streams.forget(self, has_left=has_left)
            if has_left and self.world.settings.release_after_s is not None:
                self.world.spawn(self.world.check_released(self))


@dataclass(eq=False)
class LimitedConsumer(Consumer):
    """STREAM … LIMIT n [WAIT s]: its reply ends, and then only leases hold the messages."""

    limit: int = 1
    wait_s: float | None = None
    taken: int = 0
    taken_s: float = 0.0  # when it last took rows
    leases: dict[bytes, ClaimedRow] = field(default_factory=dict)
    is_finished: bool = False

    def __post_init__(self):
        self.rows_max = self.limit

    def deliver(self, rows):
        assert not self.is_finished
        self.taken += len(rows)
        assert self.taken <= self.limit, "more than its limit"
        self.leases.update((row.id, row) for row in rows)
        self.taken_s = asyncio.get_running_loop().time()
        return super().deliver(rows)

    def finish(self):
        assert not self.is_busy, "its socket has not taken all"
        assert not self.has_left
        loop = asyncio.get_running_loop()
        if not self.taken:
            assert self.wait_s is not None, "nothing came, and it was to wait"
            assert loop.time() >= self.taken_s + self.wait_s - CLOCK_S
        if self.world.is_told and not self.world.paused and self.taken < self.limit:
            late_ns = self.world.store.clock.time_ns() - self.world.known_s * SECOND_NS
            due = self.world.due_since(self.shards, late_ns)
            own = [row for row in due if self.keys is None or row.key in self.keys]
            assert not own, "it ends, and more is due"
        self.is_finished = self.has_left = True
        self.world.registries[self.proxy].streams.forget(self, has_left=False)

    def _is_waiting(self):
        return not (self.has_left or self.is_busy)

    async def end_of_wait(self):
        """Wait as long as the statement specifies, and check that the reply ends soon after."""
        loop = asyncio.get_running_loop()
        self.taken_s = loop.time()
        if self.wait_s is None:
            return
        await asyncio.sleep(self.wait_s)
        if self.has_left:
            return
        self.world.registries[self.proxy].streams.wait_over(self)
        over_s = loop.time()
        while self.world.is_told and self._is_waiting():
            known_s = self.world.known_s
            assert loop.time() <= max(over_s, self.taken_s + known_s) + known_s, "it goes on"
            await asyncio.sleep(0.5)
