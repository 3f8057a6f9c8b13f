"""What holds back the messages of one shard that are due, and until when. Pure.

A gate lets so many through as it has room for; the narrowest one counts:

| gate              | why                                                  | it opens                                        |
|-------------------|------------------------------------------------------|-------------------------------------------------|
| pause             | `vt_paused`, or another member dispatches            | with the setting, or an election                |
|                   | (`dispatch.sending`)                                 |                                                 |
| `trouble`         | the last claim failed                                | after 50 ms, doubling to 2 s                    |
| `in_flight_limit` | `vt_max_in_flight` messages are in flight, or what a | with an ack, at the end of a lease, when a look |
|                   | former dispatcher has in flight is not read yet      | finds one gone                                  |
| `rate_limit`      | `vt_max_rate`                                        | when the next one is earned                     |
| strict order      | the message before is not done (`order.key_order`)   | with its ack, or at the end of its lease        |

Nothing goes either while no stream can take it (`dispatch.receivers`): each is full, its socket is busy, it waits for more room, or
it named other keys.

One message alone waits, though others go, where its row is refused (`set_aside`), where it is locked (the
queue tries it again), where others of its key go first (`order.key_order`), where members of its group are not done
(`order.group_watch`), and for up to a second where another stream than the one that lost it may come (`streams.lost_messages`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from streamfrom.engine.messaging.gates.in_flight_limit import InFlightLimit, share
from streamfrom.engine.messaging.gates.rate_limit import RateLimit


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.table_settings import Properties


class Load(NamedTuple):
    """What is on its way: how many messages streams hold, and how many are being claimed."""

    held: int
    claimed: int


class StrictOrder(Protocol):
    """What lets one message go after the other."""

    def closed_ns(self) -> int:
        """Return until when nothing can be sent, unless something happens before: 0 for not at all."""
        ...


@dataclass(slots=True)
class ShardGates:
    """The limits of one shard; None for those that its table does not have."""

    in_flight: InFlightLimit | None = None
    rate: RateLimit | None = None
    strict: StrictOrder | None = None

    def configure(
        self, properties: Properties, shards: int, index: int, now_ns: int | None
    ) -> None:
        """Follow the settings of a table over so many *shards*. now_ns: None before the first event."""
        limit = properties.max_in_flight
        at_most = limit and share(limit, shards, index)
        if at_most is None:
            self.in_flight = None
        elif self.in_flight is None:
            self.in_flight = InFlightLimit(at_most)
        else:
            self.in_flight.at_most = at_most
        if properties.max_rate is None:
            self.rate = None
        elif self.rate is None or now_ns is None:
            self.rate = RateLimit(properties.max_rate, shards, now_ns)
        else:
            self.rate.configure(properties.max_rate, now_ns)

    def begin(self, now_ns: int) -> None:
        """Forget what is known: another process may have sent until now."""
        if self.in_flight is not None:
            self.in_flight.begin()
        if self.rate is not None:
            self.rate.begin(now_ns)

    def clock_set_back(self, now_ns: int) -> None:
        """Plan again what was to happen at a moment of the clock before."""
        if self.rate is not None:
            self.rate.begin(now_ns)
        if self.in_flight is not None and self.in_flight.look_ns is not None:
            self.in_flight.look_ns = now_ns

    def first_stream(self, now_ns: int) -> None:
        """Begin to earn what may be sent, unless that has begun."""
        if self.rate is not None and self.rate.since_ns is None:
            self.rate.begin(now_ns)

    def room(self, due: int, load: Load, now_ns: int) -> int:
        """Return how many of *due* messages may be sent now."""
        if self.strict is not None:
            due = min(due, self.strict.closed_ns() <= now_ns)
        if self.in_flight is not None:
            due = min(due, self.in_flight.room(load.held + load.claimed))
        if self.rate is not None:
            due = min(due, self.rate.room(load.claimed, now_ns))
        return due

    def is_closed(self, load: Load, now_ns: int) -> bool:
        """Return whether nothing may be sent now, whatever is due, as far as is known."""
        is_known = self.in_flight is None or self.in_flight.is_known
        return is_known and not self.room(1, load, now_ns)

    def is_full(self, load: Load) -> bool:
        """Return whether as many messages are in flight as may be."""
        limit = self.in_flight
        return limit is not None and not limit.room(load.held + load.claimed)

    def opens_ns(self, load: Load, now_ns: int) -> int | None:
        """Return when more may be sent by rate and order; None where these let it through."""
        if self.strict is not None and (closed_ns := self.strict.closed_ns()) > now_ns:
            return closed_ns
        if self.rate is not None:
            return max(now_ns, self.rate.next_ns(load.claimed, now_ns))
        return None
