"""What the engine asks of the databases, and the interface to whoever carries it out.

The statements are conversations (`engine.messaging.store.conversation`), which stand with what they are about; a `Store` only
finds a connection and executes. Table names are unqualified: the connection's default database is the shard's. ``now_ns``
is to be read when the connection is in hand, so that waiting for one shortens nobody's wait.

A claim and a release are one short READ COMMITTED transaction each, on a connection with
autocommit off; they send their own COMMIT and rely on the Store to roll back (or to close the
connection) when a statement fails. A statement that the server refuses is thrown into the conversation as
`ServerRefused`: the rows to blame are left out (`engine.messaging.store.row_writes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from streamfrom.engine.messaging.upkeep.partition_store import PartitionStore


if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from streamfrom.engine.messaging.claims.claim_writes import ClaimRequest
    from streamfrom.engine.messaging.leases.leases import Lease
    from streamfrom.engine.messaging.queue.poll import PollRequest, PollResult
    from streamfrom.engine.messaging.table.groups import FireRequest, FireResult
    from streamfrom.engine.messaging.table.hidden_definitions import HiddenDefinitions
    from streamfrom.engine.messaging.table.message import (
        AckWrites,
        ClaimedRow,
        ClaimResult,
        LeaseWrite,
        LeaseWrites,
        Purged,
        Refusals,
        Shortenings,
    )
    from streamfrom.engine.messaging.table.message_table import MessageTable, RawTable
    from streamfrom.engine.messaging.upkeep.depths import Depth
    from streamfrom.engine.sharding.keyspace import ShardName


class Store(PartitionStore, Protocol):
    """The way to the databases of all keyspaces.

    Every method raises a StreamfromError for whatever the backend, or the way to it, refused
    or broke, and limits its own time. A cancelled call leaves no transaction behind.
    """

    async def discover(
        self,
        keyspace: str,
        shard: ShardName,
        names: Collection[str] | None = None,
        placed: Collection[str] = (),
    ) -> tuple[RawTable, ...]:
        """Return the tables of *shard* that are marked as message tables, and those of *placed*.

        names: of the tables so named alone; None for all.
        """
        ...

    async def come_or_gone(
        self, keyspace: str, shard: ShardName, known: Collection[str]
    ) -> frozenset[str] | None:
        """Return which tables of *shard* are marked as message tables and not *known*, or the other way round.

        None if a lock hides some of them: then all definitions have to be read.
        """
        ...

    async def read_hidden(
        self, keyspace: str, shard: ShardName, names: Collection[str] | None = None
    ) -> HiddenDefinitions:
        """Return by what statements on *shard* write to tables that they do not name, of the tables *names* alone if they are given."""
        ...

    async def poll(
        self, table: MessageTable, shard: ShardName, request: PollRequest
    ) -> PollResult:
        """Return the soonest keys."""
        ...

    async def claim(
        self, table: MessageTable, shard: ShardName, request: ClaimRequest
    ) -> ClaimResult:
        """Read what was never sent, if the table's leases are lazy, and claim what else is due and nobody holds."""
        ...

    async def write_leases(
        self, table: MessageTable, shard: ShardName, leases: Sequence[LeaseWrite]
    ) -> LeaseWrites:
        """Write leases that are in memory alone, but for rows that somebody holds."""
        ...

    async def write_acks(
        self, table: MessageTable, shard: ShardName, acks: Sequence[tuple[bytes, int]]
    ) -> AckWrites:
        """Write early acks, ids and times, but for rows that somebody holds."""
        ...

    async def look(
        self, table: MessageTable, shard: ShardName, ids: Sequence[bytes]
    ) -> dict[bytes, int]:
        """Return when those rows of *ids* that are unacked are due; NULL is 0."""
        ...

    async def fire(
        self, table: MessageTable, shard: ShardName, request: FireRequest
    ) -> FireResult:
        """Make held messages due whose groups are done; say for what the others wait."""
        ...

    async def leases_left(self, table: MessageTable, shard: ShardName) -> dict[bytes, int]:
        """Return which messages the rows show to be in flight, and until when."""
        ...

    async def release(
        self, table: MessageTable, shard: ShardName, rows: Sequence[ClaimedRow]
    ) -> Refusals:
        """Undo the claim of *rows* that nobody was sent; return those that the server does not write."""
        ...

    async def shorten(
        self, table: MessageTable, shard: ShardName, leases: Sequence[Lease], due_ns: int
    ) -> Shortenings:
        """Make rows due at *due_ns* that are still due when their lease ends."""
        ...

    async def depths(
        self, keyspace: str, shard: ShardName, tables: Sequence[MessageTable]
    ) -> dict[str, Depth]:
        """Return about how many rows each of *tables* has in which state, by name, without a walk over them."""
        ...

    async def purge(
        self,
        table: MessageTable,
        shard: ShardName,
        cutoff_ns: int,
        left_out: Collection[bytes] = (),
    ) -> Purged:
        """Delete rows acked before *cutoff_ns*, PURGE_ROWS_MAX at most, but for those of *left_out*."""
        ...
