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

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.table.store_job import StoreJob
    from streamfrom.engine.sharding.keyspace import ShardName


T = TypeVar("T")


class Store(Protocol):
    """The way to the databases of all keyspaces.

    Every method raises a StreamfromError for whatever the backend, or the way to it, refused
    or broke, and limits its own time. A cancelled call leaves no transaction behind.
    """

    async def run(self, table: MessageTable, shard: ShardName, job: StoreJob[T]) -> T:
        """Carry out a job; return what its conversation does."""

    async def ask(
        self, keyspace: str, shard: ShardName, question: Callable[[str], Conversation[T]]
    ) -> T:
        """Answer a question that is not about one table; return what its conversation does. question: makes it of the database's name."""

    def answering_first(
        self, keyspace: str, shards: Sequence[ShardName]
    ) -> Sequence[ShardName]:
        """Return *shards*, those that give no sign of life at the end."""
