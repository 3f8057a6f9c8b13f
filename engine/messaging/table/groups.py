"""Groups: a message that is sent when all messages of a group are done, `vt_group` and `vt_after`.

The column that `vt_group` names has the group of a message, and the one that `vt_after` names has the group after
which it comes. A message that comes after a group is its *continuation*, and not a member of that group, whatever its
own group is. NULL and the empty string are no group.

A continuation is due like any message. The claim that would send it for the first time looks for members that
are not acknowledged. While there is one, it writes no lease but makes the row *held*: due at `HELD_NS`, and
otherwise unchanged. Once the last member is acknowledged, deleted or purged, the row is due again: it *fires*
(`engine.messaging.order.group_table`). `engine.messaging.order.group_watch` decides when to look for that. No message is sent before a
claim has seen that its group is done, whichever process wrote or acknowledged the members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message import MessageKey, Refusals


# In the year 2223: after every wait that a claim can write (WAIT_MAX_NS from now), and before the time of parked rows
# (`engine.messaging.table.backoff`). Its digits are easy to recognise in a SELECT.
HELD_NS: Final = 8 * 10**18
# Columns that the queue itself reads and writes.
_TAKEN: Final = frozenset({"id", "priority", "time_next", "epoch", "time_acked", "state"})

# Where a walk over all held rows continues: the priority, None for NULL, and the id before it; None from its first on.
Place = tuple[int | None, bytes | None]


class FireRequest(NamedTuple):
    """Held messages that may be ready: *ids*, or without them those of a walk over all, from *place* on.

    left_out: the ids of rows that must not be written.
    """

    ids: tuple[bytes, ...] | None = None
    place: Place | None = None
    left_out: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class FireResult:
    """The result of looking for ready messages.

    fired: the keys of messages that are due from now on.
    waiting: for each message that continues to wait, by its id, a member of its group that is not done.
    dead: the ids in *waiting* whose member is parked, each with the name of the group.
    locked: the ids of messages that are ready, and whose rows another transaction has locked.
    place: where the walk continues; None at its end.
    refused: the rows of messages that are ready, and that the server does not write.
    """

    fired: tuple[MessageKey, ...] = ()
    waiting: Mapping[bytes, bytes] = field(default_factory=dict)
    dead: Mapping[bytes, bytes] = field(default_factory=dict)
    locked: tuple[bytes, ...] = ()
    place: Place | None = None
    refused: Refusals = field(default_factory=dict)


def column_faults(groups: tuple[str, str] | None, columns: Mapping[str, bool]) -> list[str]:
    """Return why columns cannot be those of groups. columns: whether each holds numbers, by its name in lower case."""
    if groups is None:
        return []
    named = dict(zip(("vt_group", "vt_after"), groups, strict=True))
    wrong = [
        f"{key} names '{name}', which is a column of the queue's own"
        for key, name in named.items()
        if name.lower() in _TAKEN
    ]
    wrong += [
        f"{key} names no column of the table: '{name}'"
        for key, name in named.items()
        if name.lower() not in columns and name.lower() not in _TAKEN
    ]
    if not wrong and len({columns[name.lower()] for name in groups}) > 1:
        wrong = [
            "vt_group and vt_after must be columns of one type: one holds numbers, and one texts"
        ]
    return wrong


def placement_fault(
    groups: tuple[str, str] | None, placed_by: str | None, shards: int
) -> str | None:
    """Return why members of a group and its continuations are on several shards; None if they may be on one.

    placed_by: the column that places a row on its shard, in lower case; None if it is not known.
    """
    if groups is None or shards < 2:
        return None
    _, after = groups
    # An id is unique, and members of a group do not come after it.
    if placed_by not in {"id", after.lower()}:
        return None
    return (
        f"vt_group: its rows are placed by {placed_by}, so the members of a group and what comes after them are on"
        " several shards, and no shard waits for another: shard the queue by a column that they share, SHARD BY (tenant) for example"
    )
