"""Worlds in which messages come after groups: `vt_group` and `vt_after`.

Besides the promises of `tests.sim.world`, and of `tests.sim.fleet_world` for a fleet: no message is sent while a member of the
group that it comes after is unacked; each is fired once; and none waits long after the last ack of its group,
through whichever proxy that ack went or past all of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from streamfrom.engine.messaging.dispatch.events import JobDone
from streamfrom.engine.messaging.order.group_table import Fire
from streamfrom.engine.messaging.table.groups import HELD_NS
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind
from tests.sim.consumer import SECOND_NS
from tests.sim.fleet_world import FleetWorld
from tests.sim.memory_store import raw_table
from tests.sim.ordered_queue import Ordered
from tests.sim.settings import KEYSPACE, TABLE
from tests.sim.world import World


# A firing that fails in the last moment of the trouble is tried again after a second.
SOON_S = 10


@dataclass(eq=False)
class GroupedMessages(World):
    """One history.

    held: the messages that were seen held.
    fired: how often each was fired, according to the replies.
    ready_ns: since when held messages have had a finished group.
    """

    held: set[bytes] = field(default_factory=set)
    fired: Counter[bytes] = field(default_factory=Counter)
    groups: int = 0
    ready_ns: dict[bytes, int] = field(default_factory=dict)

    def definition(self, comment):
        return raw_table(
            TABLE,
            f"{comment},vt_group=batch,vt_after=finishes",
            texts=("batch", "finishes", "tenant"),
        )

    def group(self, rows):
        """Let some rows come after others, which may come after others in turn."""
        members: list[bytes] = []
        for row in rows:
            if not members or self.dice.random() < 0.6:
                row.group = b"%d" % self.groups
                members.append(row.id)
                continue
            row.after = b"%d" % self.groups
            if self.dice.random() < 0.3:
                # Its own group is the one that it waits for.
                row.group = row.after
            elif self.dice.random() < 0.5:
                self.groups += 1
                row.group = b"%d" % self.groups
        self.groups += 1
        # A group without members.
        if self.dice.random() < 0.1:
            rows[0].after = b"nobody"

    async def until_all_acked(self):
        # Messages after a group with a bad member wait for it.
        await self.heal()
        await super().until_all_acked()

    def was_acked(self, shard, ids):
        if self.is_told:
            effect = Effect(EffectKind.ACK, tuple(int(ident) for ident in ids))
            self.registries[0].committed(KEYSPACE, shard, TABLE, [effect])

    def members(self, table, row):
        """Return the messages for which *row* must wait."""
        return [
            one
            for one in table.values()
            if row.after is not None
            and one.group == row.after
            and one.after != one.group
            and one.time_acked_ns is None
        ]

    def heard(self, event):
        super().heard(event)
        if isinstance(event, JobDone) and isinstance(event.job, Fire) and event.failure is None:
            found = event.result
            self.held.update(found.waiting)
            self.fired.update(key.id for key in found.fired)
            assert all(self.fired[key.id] == 1 for key in found.fired), "fired twice"

    def check_delivery(self, consumer, rows):
        super().check_delivery(consumer, rows)
        for row in self.claimed(rows):
            table = self.store.table(KEYSPACE, row.shard, TABLE)
            assert not self.members(table, table[row.id]), "sent before its group was done"

    def check_waiting(self, rows):
        # A walk that was broken off by a failure, and the next one.
        late_s = SOON_S if self.is_told else SOON_S + 2 * self.settings.poll_s
        now_ns = self.store.clock.time_ns()
        tables = [self.store.table(KEYSPACE, name, TABLE) for name in self.settings.shards]
        for row in rows:
            table = next(table for table in tables if row.id in table)
            is_bad = row.id in self.bad.ever
            if row.time_next_ns == HELD_NS and not (is_bad or self.members(table, row)):
                first_ns = self.ready_ns.setdefault(row.id, now_ns)
                assert now_ns - first_ns < late_s * SECOND_NS, "held, and its group is done"


@dataclass(eq=False)
class GroupedMessagesFleet(GroupedMessages, FleetWorld):
    """One history of a fleet whose dispatchers change."""


@dataclass(eq=False)
class GroupedMessagesInOrder(GroupedMessages, Ordered):
    """One history in which messages of a key also go one by one; no message waits for a held one."""
