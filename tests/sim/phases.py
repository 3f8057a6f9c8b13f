"""Where one message of one shard may lie in memory, and which combinations are legal. Pure.

A part of a dispatcher knows a message by its id in a container of its own. Most combinations of these containers would
be contradictions, by which a message is sent twice or never. `phase_of` names the legal ones; the simulator asks it after every event.
"""

from __future__ import annotations

from enum import Enum, Flag, auto
from itertools import chain
from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from streamfrom.engine.messaging.dispatch.shard_state import ShardState


class Place(Flag):
    """A container that has a message.

    QUEUED: a key of the cache, ready or a timer.
    FLYING: a claim or a release of it is under way, or it waits for another stream than the one that lost it.
    LEASED: a stream holds it, or held it until its connection ended.
    UNWRITTEN: it was sent, and its row does not show that.
    ACKED: its ack was answered, and its row does not show that.
    FOLLOWING: it goes next of its key, which has no room.
    ASIDE: the server does not write its row.
    """

    NOWHERE = 0
    QUEUED = auto()
    FLYING = auto()
    LEASED = auto()
    UNWRITTEN = auto()
    ACKED = auto()
    FOLLOWING = auto()
    ASIDE = auto()


class Phase(Enum):
    """What a dispatcher is doing with a message."""

    UNKNOWN = "only its row says"
    QUEUED = "waits for its moment, or for a stream with room"
    FLYING = "is being claimed or released"
    HELD = "a stream holds it"
    HELD_UNWRITTEN = "a stream holds it, which its row does not show"
    SENT_AGAIN = "is being claimed or released, and was held before"
    LAPSED = "its lease is over, which its row never showed"
    FOLLOWING = "goes next of its key"
    ACKED = "was acknowledged, which its row does not show"


class Contradiction(Exception):
    """A message lies in containers that exclude one another."""


# FOLLOWING and ASIDE say when a message is tried, whatever else is known of it; so they are left out here.
_Q, _F, _L, _U, _A = Place.QUEUED, Place.FLYING, Place.LEASED, Place.UNWRITTEN, Place.ACKED
# A held message is a timer of the cache too, unless the cache was full or dropped since.
LEGAL: Final = {
    Place.NOWHERE: Phase.UNKNOWN,
    _Q: Phase.QUEUED,
    _F: Phase.FLYING,
    _L: Phase.HELD,
    _L | _Q: Phase.HELD,
    _L | _F: Phase.SENT_AGAIN,
    _L | _U: Phase.HELD_UNWRITTEN,
    _L | _U | _Q: Phase.HELD_UNWRITTEN,
    _L | _U | _F: Phase.SENT_AGAIN,
    _U: Phase.LAPSED,
    _U | _Q: Phase.LAPSED,
    _U | _F: Phase.SENT_AGAIN,
    _A: Phase.ACKED,
}


def places_of(shard: ShardState, ident: bytes) -> Place:
    """Return which containers of *shard* have a message."""
    queue = shard.queue
    has = {
        Place.QUEUED: ident in queue,
        Place.FLYING: queue.is_in_flight(ident),
        Place.LEASED: shard.leases.get(ident) is not None,
        Place.UNWRITTEN: ident in shard.unwritten,
        Place.ACKED: ident in shard.early_acks,
        Place.FOLLOWING: ident in queue.following,
        Place.ASIDE: ident in queue.set_aside,
    }
    places = Place.NOWHERE
    for place, is_there in has.items():
        if is_there:
            places |= place
    return places


def phase_of(shard: ShardState, ident: bytes) -> Phase:
    """Return in which phase a message is. Raises Contradiction if its containers exclude one another."""
    places = places_of(shard, ident)
    apart = places & ~(Place.FOLLOWING | Place.ASIDE)
    phase = LEGAL.get(apart)
    if phase is None:
        raise Contradiction(f"{ident!r} of shard {shard.name}: {places}")
    if Place.FOLLOWING in places and phase in (Phase.UNKNOWN, Phase.QUEUED):
        return Phase.FOLLOWING
    return phase


def check(shard: ShardState) -> None:
    """See that no message is in two phases. Raises Contradiction."""
    claimed = (run.keys for run in shard.claims.values())
    flying = set(chain(*claimed, *shard.releases.values(), shard.lost.waiting))
    # A claim of what comes next of a key may win what is being released.
    if shard.order is None and len(flying) != shard.queue.in_flight:
        raise Contradiction(f"{flying} and {shard.queue.in_flight} in flight")
    leased = (lease.id for lease in shard.leases)
    others = (shard.unwritten.timers, shard.early_acks.acked_ns, shard.queue.following)
    for ident in chain(flying, leased, *others):
        phase_of(shard, ident)
