"""Links between members in memory: `PeerTransport`, with delays, breaks, and members that cannot be reached."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from streamfrom.engine.fleet.directory import Member
from streamfrom.engine.fleet.fleet import ElectedShard, Fleet
from streamfrom.engine.fleet.peer_link import LinkHearer, RowsSent
from tests.sim.servers import nobody_watches, now_ns


CONNECT_S = 2.0  # the longest that a transport tries
MESSAGE_S = 1e-6  # simultaneous timers run in any order


@dataclass(eq=False)
class End:
    """One end of a link: messages sent here arrive at the other end."""

    pair: Pair
    hearer: LinkHearer[Any] | None = None
    other: End = field(init=False)
    free_s: float = 0.0  # nothing arrives before this, so that messages keep their order

    def send(self, message):
        self.pair.sent(self, message)

    def close(self):
        self.pair.close(self)


@dataclass(eq=False)
class Pair:
    """A link between two members."""

    ways: Ways
    names: tuple[str, str]
    is_over: bool = False
    ends: tuple[End, End] = field(init=False)

    def __post_init__(self):
        here, there = self.ends = End(self), End(self)
        here.other, there.other = there, here

    def sent(self, end, message):
        if self.is_over:
            return
        if isinstance(message, RowsSent):
            self.ways.check_sent(self.names[1], message.payloads)
        loop = asyncio.get_running_loop()
        end.free_s = max(end.free_s + MESSAGE_S, loop.time() + self.ways.delay())
        loop.call_at(end.free_s, self._heard, end.other, message)

    def _heard(self, end, message):
        if not self.is_over and end.hearer is not None:
            end.hearer.heard(message)

    def close(self, end):
        """Let sent messages arrive, then notify only the other end."""
        loop = asyncio.get_running_loop()
        end.hearer = None
        loop.call_at(
            max(end.free_s, loop.time()) + MESSAGE_S, self._over, "closed by the other member"
        )

    def cut(self, reason="connection reset"):
        """Lose the messages under way, and notify both ends, each when it notices."""
        self._over(reason)

    def _over(self, reason):
        if self.is_over:
            return
        self.is_over = True
        self.ways.pairs.pop(self, None)
        loop = asyncio.get_running_loop()
        for end in self.ends:
            if end.hearer is not None:
                loop.call_later(self.ways.delay(), end.hearer.lost, reason)


@dataclass(eq=False)
class Ways:
    """The links between all members.

    services: the members that can be reached, by id.
    delay: draws the delay of a message.
    check_sent: called with a member's message and its id.
    pairs: the links, in the order in which they were made.
    """

    delay: Callable[[], float] = lambda: 0.001
    check_sent: Callable[[str, tuple[bytes, ...]], None] = lambda _name, _payloads: None
    services: dict[str, tuple[Member, Fleet]] = field(default_factory=dict)
    pairs: dict[Pair, None] = field(default_factory=dict)
    cut_off: set[str] = field(default_factory=set)

    def cut(self, name):
        """Break all links of a member; it cannot be reached until it is repaired."""
        self.cut_off.add(name)
        for pair in list(self.pairs):
            if name in pair.names:
                pair.cut()


@dataclass(eq=False)
class WaysOf:
    """The links of one member: `PeerTransport`."""

    ways: Ways
    own: Member

    def connect(self, member, hearer):
        ways = self.ways
        pair = Pair(ways, (self.own.id, member.id))
        pair.ends[0].hearer = hearer
        loop = asyncio.get_running_loop()
        arrives_s = pair.ends[0].free_s = loop.time() + ways.delay()
        loop.call_at(arrives_s, self._arrive, pair, member)
        return pair.ends[0]

    def greet(self, member):
        asyncio.get_running_loop().call_later(MESSAGE_S, self._knock, member)

    def _knock(self, member):
        if not self.ways.cut_off & {self.own.id, member.id} and member.id in self.ways.services:
            self.ways.services[member.id][1].look()

    def _arrive(self, pair, member):
        ways = self.ways
        if pair.is_over:
            return
        if ways.cut_off & set(pair.names) or member.id not in ways.services:
            loop = asyncio.get_running_loop()
            loop.call_later(CONNECT_S, pair.cut, f"{member.address}: connection timed out")
            return
        ways.pairs[pair] = None
        _, service = ways.services[member.id]
        pair.ends[1].hearer = service.accept(self.own, pair.ends[1])


def member_of(name: str, number: int) -> Member:
    return Member(name, "", f"{name}:1", f"PEM {name}", number, "1", "c")


def fleet_of(
    number: int, ways: Ways, openers: dict[str, Any], *, has_ways: bool = True
) -> Fleet:
    """Return the fleet as member m*number* sees it. openers: functions that open its sessions, for each shard of `ks`."""
    own = member_of(f"m{number}", number)
    shards = [
        ElectedShard("ks", shard, shard, opener, nobody_watches)
        for shard, opener in openers.items()
    ]
    fleet = Fleet(own, shards, WaysOf(ways, own) if has_ways else None, now_ns)
    ways.services[own.id] = own, fleet
    return fleet
