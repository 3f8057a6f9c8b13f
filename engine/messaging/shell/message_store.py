"""What the engine asks of the databases, and the interface to what carries it out.

The statements are conversations (`engine.messaging.store.conversation`), which stand with what they are about; a `Store` only
finds a connection and executes. Table names are unqualified: the connection's default database is the shard's. ``now_ns``
is to be read when the connection is in hand, so that waiting for one shortens no lease.

A claim and a release are one short READ COMMITTED transaction each, on a connection with
autocommit off; they send their own COMMIT and rely on the Store to roll back (or to close the
connection) when a statement fails. A statement that the server refuses is thrown into the conversation as
`ServerRefused`: the rows to blame are left out (`engine.messaging.store.row_writes`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.discovery import HiddenDefinitions
    from streamfrom.engine.messaging.table.message_table import MessageTable, RawTable
    from streamfrom.engine.messaging.table.store_job import StoreJob
    from streamfrom.engine.messaging.upkeep.depths import Depth
    from streamfrom.engine.sharding.keyspace import ShardName


T = TypeVar("T")


class Store(Protocol):
    """The way to the databases of all keyspaces.

    Every method raises a StreamfromError for whatever the backend, or the way to it, refused
    or broke, and limits its own time. A cancelled call leaves no transaction behind.
    """

    async def run(self, table: MessageTable, shard: ShardName, job: StoreJob[T]) -> T:
        """Carry out a job; return what its conversation does."""

    def answering_first(
        self, keyspace: str, shards: Sequence[ShardName]
    ) -> Sequence[ShardName]:
        """Return *shards*, those that give no sign of life at the end."""

    async def discover(
        self,
        keyspace: str,
        shard: ShardName,
        names: Collection[str] | None = None,
        placed: Collection[str] = (),
        running: Collection[str] = (),
    ) -> tuple[RawTable, ...]:
        """Return the tables of *shard* that are marked as message tables, and those of *placed*.

        names: of the tables so named alone; None for all.
        running: message tables that count as hidden, not as gone, while a lock hides them.
        """

    async def come_or_gone(
        self, keyspace: str, shard: ShardName, known: Collection[str]
    ) -> frozenset[str] | None:
        """Return which tables of *shard* are marked as message tables and not *known*, or the other way round.

        None if a lock hides some of them: then all definitions have to be read.
        """

    async def read_hidden(
        self, keyspace: str, shard: ShardName, names: Collection[str] | None = None
    ) -> HiddenDefinitions:
        """Return by what statements on *shard* write to tables that they do not name, of the tables *names* alone if they are given."""

    async def depths(
        self, keyspace: str, shard: ShardName, tables: Sequence[MessageTable]
    ) -> dict[str, Depth]:
        """Return about how many rows each of *tables* has in which state, by name, without a walk over them."""
