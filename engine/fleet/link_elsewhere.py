"""A link to a member that dispatches, the streams on it, and their receivers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.fleet.peer_link import RequestDone


if TYPE_CHECKING:
    from streamfrom.engine.fleet.directory import Member
    from streamfrom.engine.fleet.peer_link import (
        FromDispatcher,
        OfStream,
        PeerLink,
        Request,
        ToDispatcher,
    )
    from streamfrom.engine.fleet.peer_stream import StreamElsewhere
    from streamfrom.engine.fleet.prefetch_shares import PrefetchShares
    from streamfrom.engine.messaging.table.message import ClientReceiver, RowOfStream
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.sqlparse_ext.errors import StreamfromError


class EndingStream:
    """A stream with an end, `LIMIT n`, whose rows come from several dispatchers; in front of the client's receiver.

    Each dispatcher is asked for all of it, so rows beyond the limit are given back. It ends when it has its rows, or
    when all dispatchers have given their due rows. Once the first row has come, no dispatcher waits for a first one any more, and
    the client waits for the others no longer than `streams_elsewhere.REST_S`.

    Attributes:
        rows_left: how many rows it still takes.
        surplus: rows that came beyond the limit.
        is_waiting: no row has come, and the time for that is not over.
        is_done_here: the dispatcher in this process has given its due rows.
        is_over: the client's stream has ended.

    on_first: called when the first row has come.
    others_done: returns whether the other dispatchers have given their due rows.
    """

    def __init__(
        self,
        client: ClientReceiver,
        rows_max: int,
        on_first: Callable[[], None],
        others_done: Callable[[], bool],
    ) -> None:
        self.id = client.id
        self.shards = client.shards
        self.keys = client.keys
        self.columns = client.columns
        self.prefetch = client.prefetch
        self.window_first = client.window_first
        self.connection_id = client.connection_id
        self.rows_left = rows_max
        self.surplus: list[RowOfStream] = []
        self.is_waiting = True
        self.is_done_here = False
        self._client = client
        self._on_first = on_first
        self._others_done = others_done
        self._is_ready = True
        self._is_late = False
        self.is_over = False

    @property
    def rows_max(self) -> int:
        """Return how many more rows it takes."""
        return self.rows_left

    @property
    def is_empty(self) -> bool:
        """Return whether the client has no row."""
        return self.rows_left == self._client.rows_max

    def deliver(self, rows: Sequence[RowOfStream]) -> bool:
        """Write *rows* up to the limit."""
        given, surplus = rows[: self.rows_left], rows[self.rows_left :]
        if given:
            self._is_ready = self._client.deliver(given)
            self.rows_left -= len(given)
            if self.is_waiting:
                self.is_waiting = False
                self._on_first()
        self.surplus += surplus
        self.check()
        return self._is_ready

    def ready(self) -> None:
        """Note that the client's socket has taken everything."""
        self._is_ready = True
        self.check()

    def give_up(self) -> None:
        """Stop waiting for rows: the leases of those that the client has are running."""
        self._is_late = True
        self.check()

    def finish(self) -> None:
        """Note that the dispatcher here has given its due rows."""
        self.is_done_here = True
        self.check()

    def end(self, error: StreamfromError) -> None:
        """Finish the stream with *error*."""
        if not self.is_over:
            self.is_over = True
            self._client.end(error)

    def check(self) -> None:
        """Finish the client's stream if it has its rows, or all there are."""
        # Not before the client's socket has taken everything: the end would overtake rows that
        # still wait.
        is_done = self._is_late or (self.is_done_here and self._others_done())
        if (self.rows_left == 0 or is_done) and self._is_ready and not self.is_over:
            self.is_over = True
            self._client.finish()


# Deliveries remembered for a stream that makes no progress.
ARRIVALS_MAX: Final = 10_000


class _Arrival(NamedTuple):
    """Rows that came together: the first and the one after the last, counted by dispatcher."""

    dispatcher: str
    first: int
    end: int


class Arrivals:
    """The deliveries of one stream that its consumer has not passed by, if several dispatch to it.

    A dispatcher reports progress by the row that its delivery began with (`engine.messaging.streams.stream_order` gives the reason).
    Everything that came before that delivery is overtaken, whichever dispatcher sent it; so each other one learns how many of its rows
    had come by then.
    """

    def __init__(self) -> None:
        self._came: dict[str, int] = {}  # how many rows, by dispatcher
        self._passed: dict[str, int] = {}
        self._ahead: deque[_Arrival] = deque()

    def joined(self, dispatcher: str) -> None:
        """Count the rows of a dispatcher from now on."""
        self.left(dispatcher)
        self._came[dispatcher] = self._passed[dispatcher] = 0

    def left(self, dispatcher: str) -> None:
        """Forget a dispatcher."""
        self._came.pop(dispatcher, None)
        self._passed.pop(dispatcher, None)
        self._ahead = deque(one for one in self._ahead if one.dispatcher != dispatcher)

    def came(self, dispatcher: str, rows: int) -> None:
        """Note that *rows* came from a dispatcher that has joined."""
        first = self._came[dispatcher]
        self._came[dispatcher] = first + rows
        if len(self._came) == 1:
            # A member that is the only dispatcher knows the order.
            self._passed[dispatcher] = first + rows
            self._ahead.clear()
            return
        self._ahead.append(_Arrival(dispatcher, first, first + rows))
        if len(self._ahead) > ARRIVALS_MAX:
            self._pass()

    def progressed(self, dispatcher: str, row: int) -> dict[str, int]:
        """Note progress in the delivery that began with *row*; return how many rows of each other dispatcher were passed by."""
        if self._passed.get(dispatcher, row) <= row < self._came.get(dispatcher, 0):
            while self._ahead[0].dispatcher != dispatcher or self._ahead[0].end <= row:
                self._pass()
        return {one: rows for one, rows in self._passed.items() if one != dispatcher}

    def _pass(self) -> None:
        passed = self._ahead.popleft()
        self._passed[passed.dispatcher] = passed.end


@dataclass(slots=True)
class ReceiverElsewhere:
    """A receiver of this member, and its streams, by the ids of the members that serve them.

    ending: the receiver, if it is a stream with an end.
    rest: when it stops waiting for rows.
    closed: streams that are over, whose messages it still holds.
    held: its messages, as the last dispatcher of a shard reported them, until the next one knows.
    is_over: the receiver itself is over, and holds messages.
    shares: how its prefetch is divided; None for a stream without one, or with an end.
    arrivals: in which order its rows came, and how far its client has come.
    """

    receiver: ClientReceiver
    keyspace: str = ""
    table: str = ""
    streams: dict[str, StreamElsewhere] = field(default_factory=dict)
    closed: list[tuple[LinkElsewhere, int]] = field(default_factory=list)
    held: dict[ShardName, tuple[bytes, ...]] = field(default_factory=dict)
    is_over: bool = False
    ending: EndingStream | None = None
    rest: asyncio.TimerHandle | None = None
    shares: PrefetchShares | None = None
    arrivals: Arrivals = field(default_factory=Arrivals)


class LinkElsewhere:
    """A link to a member that dispatches, and the streams on it by their numbers: `LinkHearer`.

    on_heard, on_lost: take messages about a stream, and the end of the link.
    """

    def __init__(
        self,
        member: Member,
        on_heard: Callable[[LinkElsewhere, ReceiverElsewhere, StreamElsewhere, OfStream], None],
        on_lost: Callable[[LinkElsewhere, str], None],
    ) -> None:
        self.member = member
        self.streams: dict[int, tuple[ReceiverElsewhere, StreamElsewhere]] = {}
        self.link: PeerLink[ToDispatcher] | None = None
        # The requests that wait for RequestDone.
        self.wanted: dict[int, asyncio.Future[int | None]] = {}
        self._numbers = count(1)
        self._on_heard = on_heard
        self._on_lost = on_lost

    def send(self, message: ToDispatcher) -> None:
        """Send *message*, unless the link is over."""
        if self.link is not None:
            self.link.send(message)

    async def request(self, message: Callable[[int], Request], timeout_s: float) -> int | None:
        """Send a request; return the rows of RequestDone, None also if the link is over or *timeout_s* has passed.

        message: makes it from its number.
        """
        number = next(self._numbers)
        waiting = self.wanted[number] = asyncio.get_running_loop().create_future()
        self.send(message(number))
        try:
            await asyncio.wait([waiting], timeout=timeout_s)
            return waiting.result() if waiting.done() else None
        finally:
            del self.wanted[number]

    def heard(self, message: FromDispatcher) -> None:
        """Process a message of the dispatcher of streams."""
        if isinstance(message, RequestDone):
            if (waiting := self.wanted.get(message.number)) and not waiting.done():
                waiting.set_result(message.rows)
            return
        # It may have been closed here while the message was on its way.
        if found := self.streams.get(message.receiver):
            self._on_heard(self, *found, message)

    def lost(self, reason: str) -> None:
        """Note that the link is over."""
        self.link = None
        for waiting in self.wanted.values():
            if not waiting.done():
                waiting.set_result(None)
        self._on_lost(self, reason)
