"""What a commit did to messages, as the scheduler's event. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.dispatch.events import (
    Acked,
    AckedUnnamed,
    Changed,
    Due,
    Touched,
)
from streamfrom.engine.messaging.table.message import MessageKey
from streamfrom.sqlparse_ext.text.identifiers import literal
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind


if TYPE_CHECKING:
    from streamfrom.engine.messaging.dispatch.events import TableEvent
    from streamfrom.engine.sharding.keyspace import ShardName


# More messages are not named to the scheduler, which takes a microsecond for each and lets no other task run in between.
NAMED_MAX: Final = 10_000


def commit_event(shard: ShardName, effect: Effect) -> TableEvent:
    """Return the scheduler's event for *effect*."""
    ids = effect.ids
    if ids is not None and len(ids) > NAMED_MAX:
        ids = None
    if effect.kind in (EffectKind.ACK, EffectKind.REMOVE):
        if ids is None:
            # Which ones is not known; a claim finds them gone, and so does a look at those in flight.
            return AckedUnnamed(shard)
        return Acked(shard, tuple(map(literal, ids)))
    if effect.keys and effect.ids is not None and len(effect.keys) == len(effect.ids):
        keys = [
            MessageKey(literal(ident), priority, max(0, ns))
            for ident, priority, ns in effect.keys
        ]
        return Due(shard, tuple(keys))
    if effect.kind is EffectKind.TOUCH:
        return Touched(shard, tuple(map(literal, ids or ())))
    if ids is None and effect.kind is not EffectKind.NEW:
        return Changed(shard, None, by_heartbeat=effect.kind is EffectKind.HEARTBEAT)
    changed = tuple(map(literal, ids or ()))
    return Changed(shard, changed, by_heartbeat=effect.kind is EffectKind.HEARTBEAT)
