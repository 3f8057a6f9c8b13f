"""Worlds in which messages wait for others of their key: `vt_max_per_key`, and `vt_order = strict`.

Besides the promises of `tests.sim.world`, and of `tests.sim.fleet_world` for a fleet, according to the rows whenever a message is sent:
of no key have more messages started than allowed, so that a retry holds back its successors; with one at a time, they go
in the order of the queue.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar

from streamfrom.engine.messaging.order.key_order import in_turn
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.message import MessageKey
from tests.sim.consumer import SECOND_NS
from tests.sim.fleet_world import FleetWorld
from tests.sim.memory_store import raw_table
from tests.sim.settings import KEYSPACE, TABLE
from tests.sim.world import World


HOT = b"7"


@dataclass(eq=False)
class Ordered(World):
    """One history of one proxy.

    waited: how often a message was sent while another of its key had to wait for it.
    """

    # Without an election each proxy would send as much.
    changes: ClassVar = {"proxies": 1, "newest": False}

    in_order: int = 1
    waited: int = 0

    def __post_init__(self):
        super().__post_init__()
        dice = random.Random(self.seed)
        self.in_order, order = dice.choice(
            [
                (1, ",vt_order=strict"),
                (1, ",vt_key=tenant,vt_max_per_key=1"),
                (1, ",vt_key=tenant,vt_max_per_key=1"),
                (3, ",vt_key=tenant,vt_max_per_key=3"),
            ]
        )
        self.settings = replace(self.settings, order=order, ack="committed")
        self.bad.spare_acks()

    def definition(self, comment):
        return raw_table(TABLE, comment, texts=("tenant",))

    @property
    def is_strict(self):
        return "strict" in self.settings.order

    def key_of(self, number):
        """Return the key of a message: half of all have the same one, and some have none."""
        if number % 2:
            return HOT
        return None if number % 7 == 0 else b"%d" % (10 + number % 5)

    def check_delivery(self, consumer, rows):
        super().check_delivery(consumer, rows)
        for row in self.claimed(rows):
            self.check_turn(row)

    def due_since(self, shards, before_ns):
        """Leave out messages that wait for others of their key, or did so a moment ago."""
        return [
            row
            for row in super().due_since(shards, before_ns)
            if not self._waits(row, before_ns)
        ]

    def _waits(self, row, before_ns):
        if row.key is None and not self.is_strict:
            return False
        tables = [self.store.table(KEYSPACE, name, TABLE) for name in self.settings.shards]
        others = [
            one
            for one in next(table for table in tables if row.id in table).values()
            if one.id != row.id and (self.is_strict or one.key == row.key)
        ]
        started = [
            one
            for one in others
            if (one.epoch or (one.id, 0) in self.attempts) and one.time_acked_ns is None
        ]
        return len(started) >= self.in_order or any(
            max(self.touched_ns[one.id], self.acked_via.get(one.id, (0,))[0]) > before_ns
            for one in others
        )

    def _was_sent(self, ident, _by):
        """Return whether a message was sent by the sender of another one, whatever its row shows."""
        return (ident, 0) in self.attempts

    def check_turn(self, row):
        """Check that a message is sent in its turn."""
        table = self.store.table(KEYSPACE, row.shard, TABLE)
        own = table[row.id]
        if (
            (own.key is None and not self.is_strict)
            or row.epoch
            or own.time_acked_ns is not None
        ):
            return
        others = [
            one
            for one in table.values()
            if one.id != row.id
            and (self.is_strict or one.key == own.key)
            and one.time_acked_ns is None
            # No message waits for rows that are set aside.
            and not {one.id, row.id} & self.bad.ever
        ]
        started = [
            one
            for one in others
            if (one.epoch or self._was_sent(one.id, row)) and one.time_next_ns != PARKED_NS
        ]
        assert len(started) < self.in_order, f"{row.id!r} passed one of its key"
        self.waited += len(others) > len(started)
        # The latest time at which its claim can have been made.
        claimed_ns = row.due_next_ns - round(self.settings.ack_wait_s * SECOND_NS * 4 / 3) - 1
        for one in others:
            since_ns = max(one.time_next_ns or 0, self.touched_ns[one.id])
            if self.in_order > 1 or one.epoch or since_ns > claimed_ns:
                continue
            first = MessageKey(one.id, one.priority, one.time_next_ns or 0)
            mine = MessageKey(row.id, own.priority, row.time_next_ns)
            is_known = self.touched_ns[row.id] <= claimed_ns
            assert not is_known or in_turn(mine) < in_turn(first), f"{one.id!r} was to go first"


@dataclass(eq=False)
class OrderedFleet(Ordered, FleetWorld):
    """One history of a fleet whose dispatchers change."""

    def _was_sent(self, ident, by):
        # A successor does not know the messages that a dispatcher has sent without writing.
        senders = self.senders.get((ident, 0), ())
        return by.payload.term in senders or (self.settings.lease == "written" and senders)
