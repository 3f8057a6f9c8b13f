"""The places of one message of one shard in memory, and their legal combinations. Pure.

Each part of a dispatcher keeps message ids in its own container. Most combinations of these containers
are contradictions, which would send a message twice or never. `phase_of` names the legal ones; the simulator checks it after every event.
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
    ACKED: its ack was confirmed, and its row does not show that.
    FOLLOWING: it is the next of its key, which has no room.
    ASIDE: the server refuses to write its row.
    """

    QUEUED = auto()
    FLYING = auto()
    LEASED = auto()
    UNWRITTEN = auto()
    ACKED = auto()
    FOLLOWING = auto()
    ASIDE = auto()


class Phase(Enum):
    """A dispatcher's state of a message."""

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


# Checked for all messages after every event: as numbers, because flags took half of the time of a history.
_Q, _F, _L, _U, _A, _N, _S = (place.value for place in Place)
# FOLLOWING and ASIDE only decide when a message is tried, whatever its other places; so they are left out here.
# A held message is also a timer of the cache, unless the cache was full or dropped since.
LEGAL: Final = {
    0: Phase.UNKNOWN,
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


def places_of(shard: ShardState, ident: bytes) -> int:
    """Return the containers of *shard* that have a message, as the value of a `Place`."""
    queue = shard.queue
    return (
        _Q * (ident in queue)
        + _F * queue.is_in_flight(ident)
        + _L * (shard.leases.get(ident) is not None)
        + _U * (ident in shard.unwritten)
        + _A * (ident in shard.early_acks)
        + _N * (ident in queue.following)
        + _S * (ident in queue.set_aside)
    )


def phase_of(shard: ShardState, ident: bytes) -> Phase:
    """Return the phase of a message. Raises Contradiction if its containers exclude one another."""
    places = places_of(shard, ident)
    phase = LEGAL.get(places & ~(_N | _S))
    if phase is None:
        raise Contradiction(f"{ident!r} of shard {shard.name}: {Place(places)}")
    if places & _N and phase in (Phase.UNKNOWN, Phase.QUEUED):
        return Phase.FOLLOWING
    return phase


def check(shard: ShardState) -> None:
    """Check that no message is in two phases. Raises Contradiction."""
    claimed = (run.keys for run in shard.claims.values())
    flying = set(chain(*claimed, *shard.releases.values(), shard.lost.waiting))
    # A claim of the next message of a key may include one that is being released.
    if shard.order is None and len(flying) != shard.queue.in_flight:
        raise Contradiction(f"{flying} and {shard.queue.in_flight} in flight")
    leased = (lease.id for lease in shard.leases)
    others = (shard.unwritten.timers, shard.early_acks.acked_ns, shard.queue.following)
    for ident in chain(flying, leased, *others):
        phase_of(shard, ident)
