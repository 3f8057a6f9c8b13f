"""A store in memory, and tables for it: the engine without a database.

`MemoryStore` answers the real store's conversations, question by question,
so the division of a poll's room is the product's own. ``pause`` is awaited before and after
every atomic step of a call: a test lets time pass there, or raises a StoreError for a call
that fails before or after it took effect. ``refuses`` decides which rows the database does not write.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final

from streamfrom.engine.clock import Clock
from streamfrom.engine.messaging.acks.ack_writes import WriteAcks
from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.leases.lease_rows import (
    FindLeases,
    Look,
    Release,
    Shorten,
    WriteLeases,
    is_lease,
)
from streamfrom.engine.messaging.order.group_table import Fire
from streamfrom.engine.messaging.queue.poll import Poll, PollResult, poll
from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.table.backoff import PARKED_NS, is_spent, spread, wait_range
from streamfrom.engine.messaging.table.discovery import HiddenDefinitions
from streamfrom.engine.messaging.table.groups import HELD_NS, FireResult
from streamfrom.engine.messaging.table.message import (
    ClaimedRow,
    ClaimResult,
    LateWrites,
    MessageKey,
    Purged,
    Refused,
    Shortenings,
    Tried,
)
from streamfrom.engine.messaging.table.message_ids import first_id
from streamfrom.engine.messaging.table.message_table import (
    MessageTable,
    RawColumn,
    RawIndex,
    RawTable,
    load,
)
from streamfrom.engine.messaging.table.store_job import Store
from streamfrom.engine.messaging.table.table_settings import parse_comment
from streamfrom.engine.messaging.upkeep.depths import Depth
from streamfrom.engine.messaging.upkeep.partitions import (
    REST,
    ROWS_COUNTED_MAX,
    DropPartition,
    MakePartitions,
    Outcome,
    PartitionCensus,
    Partitions,
    RowsLeft,
    TakeCensus,
)
from streamfrom.engine.messaging.upkeep.purge import PURGE_ROWS_MAX, Purge
from streamfrom.engine.sharding.keyspace import ShardName
from tests.sim.stored_rows import StoredRow as StoredRow, answer as answer, by_id, turns_of


REFUSAL: Final = "the database does not write this row"
DEFAULT_COMMENT: Final = (
    "vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size=10,"
    "vt_cache_size=10000,vt_poller_interval=30"
)


def raw_table(name, comment=DEFAULT_COMMENT, *, id_type="bigint", texts=(), numbers=()):
    """Return the definition of a message table of the current layout, as recommended. texts, numbers: its further columns."""
    return RawTable(
        name=name,
        comment=comment,
        columns=(
            RawColumn("id", id_type, None, nullable=False),
            RawColumn("priority", "tinyint", "50", nullable=False),
            RawColumn("epoch", "bigint", "0", nullable=False),
            RawColumn("time_next", "bigint", "0", nullable=True),
            RawColumn("time_acked", "bigint", None, nullable=True),
            *(RawColumn(each, "varchar", None, nullable=True) for each in ("message", *texts)),
            *(RawColumn(each, "bigint", None, nullable=True) for each in numbers),
        ),
        indexes=(
            RawIndex("PRIMARY", unique=True, columns=("id",)),
            RawIndex(
                "poller_idx", unique=False, columns=("time_acked", "priority", "time_next")
            ),
        ),
    )


def loaded(raw, keyspace="ks"):
    """Return the table that *raw* defines; a definition with a fault is an AssertionError."""
    table = load(keyspace, raw)
    assert isinstance(table, MessageTable), table
    return table


async def _no_pause(_call, _shard):
    await asyncio.sleep(0)


def _takes_all(_tried, _row):
    return False


@dataclass
class MemoryStore(Store):
    """Databases in memory: one table of rows for each (keyspace, shard, table)."""

    clock: Clock
    pause: Callable[[str, ShardName], Awaitable[None]] = _no_pause
    definitions: dict[str, dict[str, RawTable]] = field(default_factory=dict)
    rows: dict[tuple[str, ShardName, str], dict[bytes, StoredRow]] = field(default_factory=dict)
    calls: list[tuple[str, ShardName]] = field(default_factory=list)
    partitioned: dict[tuple[str, ShardName, str], Partitions] = field(default_factory=dict)
    refuses: Callable[[Tried, StoredRow], bool] = _takes_all

    async def depths(self, keyspace, shard, tables):
        """See `Store.depths`; here they are exact."""
        async with self._call("depths", shard):
            found = {}
            for table in tables:
                rows = self.table(keyspace, shard, table.name).values()
                unacked = [row for row in rows if row.time_acked_ns is None]
                parked = sum(row.time_next_ns == PARKED_NS for row in unacked)
                found[table.name] = Depth(len(unacked) - parked, parked)
            return found

    # Changes that a test makes to the tables, as a client would

    def create(self, keyspace, *tables):
        """Create tables, or replace their definitions and keep the rows."""
        self.definitions.setdefault(keyspace, {}).update({raw.name: raw for raw in tables})

    def drop(self, keyspace, name):
        """Drop a table."""
        del self.definitions[keyspace][name]

    def table(self, keyspace, shard, name):
        """Return the rows of a table by the literals of their ids."""
        return self.rows.setdefault((keyspace, shard, name), {})

    def insert(self, keyspace, shard, name, *rows):
        """Commit new rows; return their keys."""
        self.table(keyspace, shard, name).update((row.id, row) for row in rows)
        return tuple(MessageKey(row.id, row.priority, row.time_next_ns or 0) for row in rows)

    def ack(self, keyspace, shard, name, ids):
        """Commit an ack; return the ids that it newly acked."""
        table = self.table(keyspace, shard, name)
        acked = [i for i in ids if i in table and table[i].time_acked_ns is None]
        for ident in acked:
            row = table[ident]
            if not row.epoch and self._is_lazy(keyspace, name):
                row.epoch = int((row.time_next_ns or 0) <= self.clock.time_ns())
            row.time_acked_ns = self.clock.time_ns()
            table[ident].time_next_ns = None
        return tuple(acked)

    def _is_lazy(self, keyspace, name):
        raw = self.definitions.get(keyspace, {}).get(name)
        return raw is not None and parse_comment(raw.comment).lease_delay_ns > 0

    # The store

    async def run(self, table, shard, job):
        """Run a job without its conversation, except polls."""
        if isinstance(job, Poll):
            return await self.poll(table, shard, job.request)
        work = WORK[type(job)]
        async with self._call(work.__name__, shard):
            return work(self, table, shard, self.table(table.keyspace, shard, table.name), job)

    async def ask(self, keyspace, shard, question):
        """Answer a question with the method of its name, without its conversation."""
        answer = getattr(self, question.func.__name__)
        return await answer(keyspace, shard, *question.args, **question.keywords)

    async def discover(self, keyspace, shard, names=None, placed=(), running=()):
        """Return the definitions, the same for every shard."""
        async with self._call("discover", shard):
            found = self.definitions.get(keyspace, {})
            return tuple(raw for name, raw in found.items() if names is None or name in names)

    def answering_first(self, keyspace, shards):
        """Return *shards*: all answer."""
        return shards

    async def come_or_gone(self, keyspace, shard, known):
        """Compare the definitions with *known*."""
        async with self._call("come_or_gone", shard):
            return frozenset(self.definitions.get(keyspace, {})).symmetric_difference(known)

    async def read_hidden(self, keyspace, shard, names=None):
        """Return that nothing writes to tables that statements do not name."""
        return HiddenDefinitions()

    async def poll(self, table, shard, request):
        """Answer the poll's own questions, one at a time."""
        self.calls.append(("poll", shard))
        rows = self.table(table.keyspace, shard, table.name)
        conversation = poll(table, request, self.clock.time_ns())
        query = next(conversation)
        while True:
            await self.pause("poll", shard)
            waiting = [row for row in rows.values() if row.time_acked_ns is None]
            try:
                query = conversation.send(StoreAnswer(answer(table, query.sql, waiting)))
            except StopIteration as stop:
                result: PollResult = stop.value
                await self.pause("poll", shard)
                return result

    def claim(self, table, shard, rows, request):
        """Read messages never sent, if leases are lazy, and claim those still due and not locked."""
        now_ns = self.clock.time_ns()
        won = []
        first = wait_range(table.properties, 0)
        turns = ClaimResult(())
        if table.properties.in_order is not None:
            ends_ns = {i: one.time_next_ns for i, one in request.unwritten.items()}
            ends_ns.update(request.held_ns)
            turns = turns_of(
                table,
                {
                    i: replace(row, time_next_ns=held_ns, epoch=max(row.epoch, 1))
                    if (held_ns := ends_ns.get(i)) is not None
                    else row
                    for i, row in rows.items()
                    if i not in request.left_out
                },
                request.ids,
                now_ns,
                request.known_keys,
            )
            free = [ident for ident, key in turns.asked_keys.items() if key is None]
            request = replace(request, ids=(*free, *turns.chosen))
        passed_over = dict(turns.passed_over)
        spent, held, refused = [], [], dict[bytes, Refused]()
        # As a database would: in the order of the key, whatever order was requested.
        for row in sorted((rows[i] for i in set(request.ids) if i in rows), key=by_id):
            time_next_ns = row.time_next_ns or 0
            if row.time_acked_ns is not None:
                continue
            is_first = row.epoch == 0 and row.id not in request.unwritten
            comes_after = table.groups is not None and row.after is not None
            is_lazy = table.properties.lease_delay_ns and time_next_ns <= now_ns
            if is_first and is_lazy and not comes_after:
                due_ns = now_ns + spread(first, request.draw())
                sent = (row.id, shard, 0, time_next_ns, due_ns, row.payload)
                won.append(ClaimedRow(*sent, is_written=False))
                continue
            if row.is_locked or time_next_ns > now_ns:
                passed_over[row.id] = time_next_ns
                continue
            if not self._may_write(Tried.CLAIM, row, refused):
                continue
            row.epoch = row.epoch or int(row.id in request.unwritten)
            if comes_after and not row.epoch and _member(rows, row) is not None:
                row.time_next_ns = passed_over[row.id] = HELD_NS
                held.append(row.id)
                continue
            if is_spent(table.properties, row.epoch):
                spent.append(row.id)
                if (dead_letter := table.properties.dead_letter) is None:
                    row.time_next_ns = passed_over[row.id] = PARKED_NS
                else:
                    self.table(table.keyspace, shard, dead_letter)[row.id] = rows.pop(row.id)
                continue
            wait_ns = spread(wait_range(table.properties, row.epoch), request.draw())
            due_ns = now_ns + wait_ns
            sent = (row.id, shard, row.epoch, time_next_ns, due_ns, row.payload)
            won.append(ClaimedRow(*sent))
            row.epoch += 1
            row.time_next_ns = due_ns
        is_dead = table.properties.dead_letter is not None
        return replace(
            turns,
            rows=tuple(won),
            passed_over=passed_over,
            held=tuple(held),
            refused=refused,
            dead=tuple(spent) if is_dead else (),
            parked=() if is_dead else tuple(spent),
        )

    def look(self, _table, _shard, rows, job):
        """Return when unacked rows are due."""
        return {
            ident: rows[ident].time_next_ns or 0
            for ident in job.ids
            if ident in rows and rows[ident].time_acked_ns is None
        }

    def fire(self, table, _shard, rows, job):
        """Make held rows due whose groups are done; a walk covers all of them at once."""
        now_ns, request = self.clock.time_ns(), job.request
        asked = sorted(rows) if request.ids is None else request.ids
        fired, waiting, dead = [], {}, {}
        locked, refused = list[bytes](), dict[bytes, Refused]()
        for row in (rows[ident] for ident in asked if ident in rows):
            if row.time_acked_ns is not None or row.time_next_ns != HELD_NS:
                continue
            member = _member(rows, row) if table.groups is not None else None
            if member is not None:
                waiting[row.id] = member.id
                if member.time_next_ns == PARKED_NS:
                    dead[row.id] = row.after or b""
            elif row.id not in request.left_out and self._may_write(
                Tried.FIRE, row, refused, locked
            ):
                row.time_next_ns = now_ns
                fired.append(MessageKey(row.id, row.priority, now_ns))
        return FireResult(tuple(fired), waiting, dead, tuple(locked), refused=refused)

    def leases_left(self, table, _shard, rows, _job):
        """Return the messages that are in flight according to the rows, and until when."""
        now_ns = self.clock.time_ns()
        return {
            row.id: row.time_next_ns or 0
            for row in rows.values()
            if row.time_acked_ns is None
            and is_lease(table.properties, row.epoch, row.time_next_ns or 0, now_ns)
        }

    def release(self, _table, _shard, rows, job):
        """Undo the claim of rows that have not changed since."""
        refused = dict[bytes, Refused]()
        for claimed in job.rows:
            row = rows.get(claimed.id)
            shown = None if row is None else (row.time_acked_ns, row.epoch, row.time_next_ns)
            is_ours = shown == (None, claimed.epoch + 1, claimed.due_next_ns)
            if is_ours and self._may_write(Tried.RETURN, row, refused):
                row.epoch, row.time_next_ns = claimed.epoch, claimed.time_next_ns
        return refused

    def shorten(self, _table, _shard, rows, job):
        """Make rows due sooner that have not changed since."""
        shortened, refused = [], dict[bytes, Refused]()
        for lease in job.leases:
            row = rows.get(lease.id)
            shown = None if row is None else (row.time_acked_ns, row.time_next_ns)
            if shown == (None, lease.until_ns) and self._may_write(Tried.RETURN, row, refused):
                row.time_next_ns = job.due_ns
                shortened.append(lease.id)
        return Shortenings(tuple(shortened), refused)

    def write_leases(self, _table, _shard, rows, job):
        """Write the leases of rows that are not locked."""
        now_ns = self.clock.time_ns()
        changed, locked, refused = [], list[bytes](), dict[bytes, Refused]()
        for lease in job.leases:
            row = rows.get(lease.id)
            if row is None or row.time_acked_ns is not None:
                continue
            time_ns = row.time_next_ns or 0
            is_new = lease.is_first and not row.epoch
            is_ours = time_ns in lease.shown_ns or (is_new and time_ns <= now_ns)
            if not (is_ours or is_new):
                changed.append(row.id)
            elif self._may_write(Tried.LEASE, row, refused, locked):
                row.epoch = max(row.epoch, 1)
                if is_ours:
                    row.time_next_ns = lease.until_ns
                else:
                    changed.append(row.id)
        return LateWrites(tuple(locked), refused, tuple(changed))

    def write_acks(self, table, shard, rows, job):
        """Acknowledge rows that are not locked."""
        locked, refused = list[bytes](), dict[bytes, Refused]()
        for ident, acked_ns in job.acks:
            row = rows.get(ident)
            is_unacked = row is not None and row.time_acked_ns is None
            if is_unacked and self._may_write(Tried.ACK, row, refused, locked):
                self.ack(table.keyspace, shard, table.name, (ident,))
                row.time_acked_ns = acked_ns
        return LateWrites(tuple(locked), refused)

    def _may_write(self, tried, row, refused, locked=None):
        """Return whether the database writes an unlocked row; note it if it does not."""
        if locked is not None and row.is_locked:
            locked.append(row.id)
        elif self.refuses(tried, row):
            refused[row.id] = Refused(tried, REFUSAL)
        else:
            return True
        return False

    def purge(self, _table, _shard, rows, job):
        """Delete one batch of old acked rows."""
        old = [
            row.id
            for row in rows.values()
            if row.time_acked_ns is not None
            and row.time_acked_ns < job.cutoff_ns
            and row.id not in job.left_out
        ][:PURGE_ROWS_MAX]
        refused = dict[bytes, Refused]()
        for ident in old:
            if self._may_write(Tried.PURGE, rows[ident], refused):
                del rows[ident]
        return Purged(len(old), len(old) - len(refused), refused)

    def partitions(self, table, shard, _rows, _job):
        """Take a census."""
        found = self.partitioned.get((table.keyspace, shard, table.name))
        if found is None:
            return None
        now_ns, purge_after_ns = self.clock.time_ns(), table.properties.purge_after_ns
        left = {
            each.name: self._rows_left(table, shard, each.name, now_ns - purge_after_ns)
            for each in found.old(now_ns, purge_after_ns)
        }
        rest_rows = len(self.rows_of_partition(table, shard, found.rest))
        return PartitionCensus(found, left, min(rest_rows, ROWS_COUNTED_MAX))

    def drop_partition(self, table, shard, rows, job):
        """Drop a partition; a locked row blocks the table. The number of rows is exact."""
        gone = self.rows_of_partition(table, shard, job.partition)
        outcome = Outcome.DONE
        if any(row.is_locked for row in rows.values()):
            outcome = Outcome.HELD
        elif any(self._rows_left(table, shard, job.partition, job.cutoff_ns)):
            outcome = Outcome.KEPT
        else:
            for row in gone:
                del rows[row.id]
            at = table.keyspace, shard, table.name
            timed = (each for each in self.partitioned[at].timed if each.name != job.partition)
            self.partitioned[at] = replace(self.partitioned[at], timed=tuple(timed))
        return outcome, len(gone)

    def make_partitions(self, table, shard, rows, job):
        """Make partitions; a locked row blocks the table."""
        if any(row.is_locked for row in rows.values()):
            return Outcome.HELD
        if self.rows_of_partition(table, shard, job.rest):
            return Outcome.KEPT
        at = table.keyspace, shard, table.name
        timed = (*self.partitioned[at].timed, *job.made)
        self.partitioned[at] = replace(self.partitioned[at], timed=timed)
        return Outcome.DONE

    def rows_of_partition(self, table, shard, name):
        """Return the rows of a partition."""
        timed = self.partitioned[table.keyspace, shard, table.name].timed
        return [
            row
            for row in self.table(table.keyspace, shard, table.name).values()
            if next(
                (each.name for each in timed if int(row.id) < first_id(each.until_ns)), REST
            )
            == name
        ]

    def _rows_left(self, table, shard, name, cutoff_ns):
        acked = [row.time_acked_ns for row in self.rows_of_partition(table, shard, name)]
        return RowsLeft(
            acked.count(None), sum(ns is not None and ns >= cutoff_ns for ns in acked)
        )

    @contextlib.asynccontextmanager
    async def _call(self, name, shard):
        """Pause before and after an atomic step."""
        self.calls.append((name, shard))
        await self.pause(name, shard)
        try:
            yield
        finally:
            await self.pause(name, shard)


def _member(rows, after):
    """Return the last unfinished member of the group that *after* waits for."""
    members = (
        row
        for row in rows.values()
        if row.group == after.after and row.after != row.group and row.time_acked_ns is None
    )
    return max(members, key=by_id, default=None)


# The method for each job; its name is that of the call.
WORK: Final[dict[type, Callable[..., object]]] = {
    Claim: MemoryStore.claim,
    DropPartition: MemoryStore.drop_partition,
    FindLeases: MemoryStore.leases_left,
    Fire: MemoryStore.fire,
    Look: MemoryStore.look,
    MakePartitions: MemoryStore.make_partitions,
    Purge: MemoryStore.purge,
    Release: MemoryStore.release,
    Shorten: MemoryStore.shorten,
    TakeCensus: MemoryStore.partitions,
    WriteAcks: MemoryStore.write_acks,
    WriteLeases: MemoryStore.write_leases,
}
