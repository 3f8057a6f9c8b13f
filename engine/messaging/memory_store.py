"""A store in memory, and tables to put into it: the engine without a database.

`MemoryStore` answers the very conversations that the real store sends, question by question,
so the division of a poll's room is the product's own. ``pause`` is awaited before and after
every atomic step of a call: a test lets time pass there, or raises a StoreError for a call
that fails before or after it took effect.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.attempts import PARKED_NS, is_spent
from streamfrom.engine.messaging.backoff import spread, wait_range
from streamfrom.engine.messaging.conversation import StoreAnswer
from streamfrom.engine.messaging.message import ClaimedRow, ClaimResult, LeaseWrites, MessageKey
from streamfrom.engine.messaging.message_store import PURGE_ROWS_MAX
from streamfrom.engine.messaging.message_table import (
    MessageTable,
    RawColumn,
    RawIndex,
    RawTable,
    load,
)
from streamfrom.engine.messaging.poll import NextPriority, PollPart, PollSelect, poll
from streamfrom.engine.messaging.table_comment import parse_comment
from streamfrom.sqlparse_ext.text.identifiers import literal


if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from streamfrom.engine.messaging.clock import Clock
    from streamfrom.engine.messaging.conversation import Row
    from streamfrom.engine.messaging.leases import Lease
    from streamfrom.engine.messaging.message_store import ClaimRequest
    from streamfrom.engine.messaging.poll import PollRequest, PollResult
    from streamfrom.engine.sharding.keyspace import ShardName


DEFAULT_COMMENT: Final = (
    "vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size=10,"
    "vt_cache_size=10000,vt_poller_interval=30"
)


def raw_table(
    name: str, comment: str = DEFAULT_COMMENT, *, id_type: str = "bigint"
) -> RawTable:
    """Return the definition of a message table of the current layout, as recommended."""
    return RawTable(
        name=name,
        comment=comment,
        columns=(
            RawColumn("id", id_type, None, nullable=False),
            RawColumn("priority", "tinyint", "50", nullable=False),
            RawColumn("epoch", "bigint", "0", nullable=False),
            RawColumn("time_next", "bigint", "0", nullable=True),
            RawColumn("time_acked", "bigint", None, nullable=True),
            RawColumn("message", "varchar", None, nullable=True),
        ),
        indexes=(
            RawIndex("PRIMARY", unique=True, columns=("id",)),
            RawIndex(
                "poller_idx", unique=False, columns=("time_acked", "priority", "time_next")
            ),
        ),
    )


def loaded(raw: RawTable, keyspace: str = "ks") -> MessageTable:
    """Return the table that *raw* defines; a definition with a fault is an AssertionError."""
    table = load(keyspace, raw)
    assert isinstance(table, MessageTable), table
    return table


@dataclass(slots=True)
class StoredRow:
    """One message in memory; the id is a literal. NULL is None.

    is_locked: a transaction that is under way holds it, so a claim passes over it.
    """

    id: bytes
    priority: int = 50
    epoch: int = 0
    time_next_ns: int | None = 0
    time_acked_ns: int | None = None
    payload: bytes = b""
    is_locked: bool = False


async def _no_pause(_call: str, _shard: ShardName) -> None:
    await asyncio.sleep(0)


@dataclass(slots=True)
class MemoryStore:
    """Databases in memory: one table of rows for each (keyspace, shard, table)."""

    clock: Clock
    pause: Callable[[str, ShardName], Awaitable[None]] = _no_pause
    definitions: dict[str, dict[str, RawTable]] = field(default_factory=dict)
    rows: dict[tuple[str, ShardName, str], dict[bytes, StoredRow]] = field(default_factory=dict)
    calls: list[tuple[str, ShardName]] = field(default_factory=list)

    async def depths(
        self, keyspace: str, shard: ShardName, tables: Sequence[MessageTable]
    ) -> dict[str, int]:
        """See `Store.depths`; here they are exact."""
        async with self._call("depths", shard):
            return {
                table.name: sum(
                    row.time_acked_ns is None
                    for row in self.table(keyspace, shard, table.name).values()
                )
                for table in tables
            }

    # What a test does to the tables, as a client would

    def create(self, keyspace: str, *tables: RawTable) -> None:
        """Create tables, or replace their definitions and keep the rows."""
        self.definitions.setdefault(keyspace, {}).update({raw.name: raw for raw in tables})

    def drop(self, keyspace: str, name: str) -> None:
        """Drop a table."""
        del self.definitions[keyspace][name]

    def table(self, keyspace: str, shard: ShardName, name: str) -> dict[bytes, StoredRow]:
        """Return the rows of a table by the literals of their ids."""
        return self.rows.setdefault((keyspace, shard, name), {})

    def insert(
        self, keyspace: str, shard: ShardName, name: str, *rows: StoredRow
    ) -> tuple[MessageKey, ...]:
        """Commit new rows; return their keys."""
        self.table(keyspace, shard, name).update((row.id, row) for row in rows)
        return tuple(MessageKey(row.id, row.priority, row.time_next_ns or 0) for row in rows)

    def ack(
        self, keyspace: str, shard: ShardName, name: str, ids: Iterable[bytes]
    ) -> tuple[bytes, ...]:
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

    def _is_lazy(self, keyspace: str, name: str) -> bool:
        raw = self.definitions.get(keyspace, {}).get(name)
        return raw is not None and parse_comment(raw.comment).lease_delay_ns > 0

    # The store

    async def discover(self, keyspace: str, shard: ShardName) -> tuple[RawTable, ...]:
        """Return the definitions, the same for every shard."""
        async with self._call("discover", shard):
            return tuple(self.definitions.get(keyspace, {}).values())

    async def poll(
        self, table: MessageTable, shard: ShardName, request: PollRequest
    ) -> PollResult:
        """Answer the poll's own questions, one at a time."""
        self.calls.append(("poll", shard))
        rows = self.table(table.keyspace, shard, table.name)
        conversation = poll(table, request, self.clock.time_ns())
        query = next(conversation)
        while True:
            await self.pause("poll", shard)
            waiting = [row for row in rows.values() if row.time_acked_ns is None]
            try:
                query = conversation.send(StoreAnswer(answer(query.about, waiting)))
            except StopIteration as stop:
                result: PollResult = stop.value
                await self.pause("poll", shard)
                return result

    async def claim(
        self, table: MessageTable, shard: ShardName, request: ClaimRequest
    ) -> ClaimResult:
        """Read what was never sent, if leases are lazy, and claim what is still due and not locked."""
        async with self._call("claim", shard):
            now_ns = self.clock.time_ns()
            rows = self.table(table.keyspace, shard, table.name)
            won = []
            first = wait_range(table.properties, 0)
            passed_over = {}
            spent = []
            # As a database would: in the order of the key, whatever order was asked for.
            for row in sorted((rows[i] for i in set(request.ids) if i in rows), key=_by_id):
                time_next_ns = row.time_next_ns or 0
                if row.time_acked_ns is not None:
                    continue
                is_first = row.epoch == 0 and row.id not in request.uncounted
                if is_first and table.properties.lease_delay_ns and time_next_ns <= now_ns:
                    due_ns = now_ns + spread(first, request.draw())
                    won.append(
                        ClaimedRow(
                            row.id,
                            shard,
                            0,
                            time_next_ns,
                            due_ns,
                            row.payload,
                            is_written=False,
                        )
                    )
                    continue
                if row.is_locked or time_next_ns > now_ns:
                    passed_over[row.id] = time_next_ns
                    continue
                row.epoch = row.epoch or int(row.id in request.uncounted)
                if is_spent(table.properties, row.epoch):
                    spent.append(row.id)
                    if (dead_letter := table.properties.dead_letter) is None:
                        row.time_next_ns = passed_over[row.id] = PARKED_NS
                    else:
                        self.table(table.keyspace, shard, dead_letter)[row.id] = rows.pop(
                            row.id
                        )
                    continue
                wait_ns = spread(wait_range(table.properties, row.epoch), request.draw())
                due_ns = now_ns + wait_ns
                won.append(
                    ClaimedRow(row.id, shard, row.epoch, time_next_ns, due_ns, row.payload)
                )
                row.epoch += 1
                row.time_next_ns = due_ns
            result = ClaimResult(tuple(won), passed_over)
            if table.properties.dead_letter is None:
                return replace(result, parked=tuple(spent))
            return replace(result, dead=tuple(spent))

    async def look(
        self, table: MessageTable, shard: ShardName, ids: Sequence[bytes]
    ) -> dict[bytes, int]:
        """Return when unacked rows are due."""
        async with self._call("look", shard):
            rows = self.table(table.keyspace, shard, table.name)
            return {
                ident: rows[ident].time_next_ns or 0
                for ident in ids
                if ident in rows and rows[ident].time_acked_ns is None
            }

    async def release(
        self, table: MessageTable, shard: ShardName, rows: Sequence[ClaimedRow]
    ) -> None:
        """Undo the claim of rows to which nothing has happened since."""
        async with self._call("release", shard):
            stored = self.table(table.keyspace, shard, table.name)
            for claimed in rows:
                row = stored.get(claimed.id)
                if (
                    row is not None
                    and row.time_acked_ns is None
                    and (row.epoch, row.time_next_ns)
                    == (claimed.epoch + 1, claimed.due_next_ns)
                ):
                    row.epoch, row.time_next_ns = claimed.epoch, claimed.time_next_ns

    async def shorten(
        self, table: MessageTable, shard: ShardName, leases: Sequence[Lease], due_ns: int
    ) -> tuple[bytes, ...]:
        """Make rows due sooner to which nothing has happened since."""
        async with self._call("shorten", shard):
            stored = self.table(table.keyspace, shard, table.name)
            shortened = []
            for lease in leases:
                row = stored.get(lease.id)
                if (
                    row is not None
                    and row.time_acked_ns is None
                    and row.time_next_ns == lease.until_ns
                ):
                    row.time_next_ns = due_ns
                    shortened.append(lease.id)
            return tuple(shortened)

    async def write_leases(
        self, table: MessageTable, shard: ShardName, leases: Sequence[MessageKey]
    ) -> LeaseWrites:
        """Write the leases of rows that are not locked."""
        async with self._call("write_leases", shard):
            now_ns = self.clock.time_ns()
            stored = self.table(table.keyspace, shard, table.name)
            rescheduled, locked = [], []
            for lease in leases:
                row = stored.get(lease.id)
                if row is None or row.time_acked_ns is not None or row.epoch:
                    continue
                if row.is_locked:
                    locked.append(row.id)
                    continue
                row.epoch = 1
                if (row.time_next_ns or 0) <= now_ns:
                    row.time_next_ns = lease.time_next_ns
                else:
                    rescheduled.append(row.id)
            return LeaseWrites(tuple(rescheduled), tuple(locked))

    async def purge(self, table: MessageTable, shard: ShardName, cutoff_ns: int) -> int:
        """Delete one batch of old acked rows."""
        async with self._call("purge", shard):
            rows = self.table(table.keyspace, shard, table.name)
            old = [
                row.id
                for row in rows.values()
                if row.time_acked_ns is not None and row.time_acked_ns < cutoff_ns
            ][:PURGE_ROWS_MAX]
            for ident in old:
                del rows[ident]
            return len(old)

    def _call(self, name: str, shard: ShardName) -> _Call:
        self.calls.append((name, shard))
        return _Call(self, name, shard)


@dataclass(frozen=True, slots=True)
class _Call:
    """Pauses before and after an atomic step."""

    store: MemoryStore
    name: str
    shard: ShardName

    async def __aenter__(self) -> None:
        await self.store.pause(self.name, self.shard)

    async def __aexit__(self, *failure: object) -> None:
        await self.store.pause(self.name, self.shard)


def _by_id(row: StoredRow) -> tuple[int, bytes]:
    return len(row.id), row.id  # the numeric order of the non-negative ids of tests


def answer(about: object, rows: list[StoredRow]) -> list[Row]:
    """Answer one of the poll's questions about unacked *rows* as the database would."""
    if isinstance(about, NextPriority):
        above = [
            row.priority for row in rows if about.after is None or row.priority > about.after
        ]
        return [((literal(min(above)) if above else None,), b"")]
    assert isinstance(about, PollSelect)
    found = [row for row in rows if row.priority == about.priority and _is_in(row, about)]
    latest_first = about.part is PollPart.DUE_NEWEST
    # Ties stand in the order of the id, backwards, as on a descending index read in reverse.
    found.sort(key=_by_id, reverse=about.part is PollPart.SOONEST)
    if about.part is not PollPart.ZERO:
        found.sort(key=lambda row: row.time_next_ns or 0, reverse=latest_first)
    return [
        ((row.id, None if row.time_next_ns is None else b"%d" % row.time_next_ns), b"")
        for row in found[: about.limit]
    ]


def _is_in(row: StoredRow, select: PollSelect) -> bool:
    match select.part:
        case PollPart.SOONEST:
            return True
        case PollPart.ZERO:
            return row.time_next_ns == 0
        case PollPart.NULL:
            return row.time_next_ns is None
        case PollPart.DUE | PollPart.DUE_NEWEST:
            return row.time_next_ns is not None and 0 < row.time_next_ns <= select.now_ns
