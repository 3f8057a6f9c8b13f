"""A link to a member that dispatches, the streams on it, and the receivers whose streams they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from streamfrom.engine.fleet.arrivals import Arrivals
from streamfrom.engine.fleet.peer_link import RequestDone


if TYPE_CHECKING:
    from streamfrom.engine.fleet.directory import Member
    from streamfrom.engine.fleet.ending_stream import EndingStream
    from streamfrom.engine.fleet.peer_link import (
        FromDispatcher,
        OfStream,
        PeerLink,
        Request,
        ToDispatcher,
    )
    from streamfrom.engine.fleet.peer_stream import StreamElsewhere
    from streamfrom.engine.fleet.prefetch_shares import PrefetchShares
    from streamfrom.engine.messaging.table.message import ClientReceiver
    from streamfrom.engine.sharding.keyspace import ShardName


@dataclass(slots=True)
class ReceiverElsewhere:
    """A receiver of this member, and its streams, by the ids of the members that serve them.

    ending: the receiver, if it is a stream with an end.
    closed: streams that are over, whose messages it goes on holding.
    held: what the last dispatcher of a shard said that it holds, until the next one knows.
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
    shares: PrefetchShares | None = None
    arrivals: Arrivals = field(default_factory=Arrivals)

    @property
    def is_done(self) -> bool:
        """True once all members that serve it have given what was due."""
        return all(stream.is_finished for stream in self.streams.values())


class LinkElsewhere:
    """A link to a member that dispatches, and the streams on it by their numbers: `LinkHearer`.

    on_heard, on_lost: take in what the dispatcher says of a stream, and that the link is over.
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
        # What waits for RequestDone.
        self.wanted: dict[int, asyncio.Future[int | None]] = {}
        self._numbers = count(1)
        self._on_heard = on_heard
        self._on_lost = on_lost

    def send(self, message: ToDispatcher) -> None:
        """Send *message*, unless the link is over."""
        if self.link is not None:
            self.link.send(message)

    async def request(self, message: Callable[[int], Request], timeout_s: float) -> int | None:
        """Send a request; return what RequestDone says, None also if the link is over or *timeout_s* has passed.

        message: makes it of its number.
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
        """Take in what the dispatcher of streams says."""
        if isinstance(message, RequestDone):
            if (waiting := self.wanted.get(message.number)) and not waiting.done():
                waiting.set_result(message.rows)
            return
        # It may have been closed here while the message was on its way.
        if found := self.streams.get(message.stream):
            self._on_heard(self, *found, message)

    def lost(self, reason: str) -> None:
        """Note that the link is over."""
        self.link = None
        for waiting in self.wanted.values():
            if not waiting.done():
                waiting.set_result(None)
        self._on_lost(self, reason)
