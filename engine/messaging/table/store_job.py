"""A scheduler's job on the rows of a shard: an action that carries its own statements.

The shell runs a job's conversation on a connection of its kind (`Store`) and returns the result as one event for every job
(`engine.messaging.dispatch.events.JobDone`).

A conversation (`engine.messaging.store.conversation`) is defined with its subject; a `Store` only finds a connection and executes.
Table names are unqualified: the connection's default database is the shard's.

A claim and a release are one short READ COMMITTED transaction each, on a connection with
autocommit off; they send their own COMMIT and rely on the Store to roll back (or to close the
connection) when a statement fails. A statement that the server refuses is thrown into the conversation as
`ServerRefused`: the rows to blame are left out (`engine.messaging.store.row_writes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import At, Conversation
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Access(Enum):
    """The kind of connection for a job."""

    # Any: it reads, each statement separately.
    READ = auto()
    # Any: one transaction, which is right whichever member dispatches the shard now.
    WRITE = auto()
    # The one that holds the dispatcher's lock, if there is an election: one transaction.
    DISPATCH = auto()
    # Like WRITE, but few at a time on a shard, because all queues purge at the same moments.
    UPKEEP = auto()
    # One that is closed afterwards, with all its locks; statements are given up once their patience is over.
    APART = auto()


@record
class AboutShard:
    """An event on a shard, or an action."""

    shard: ShardName


class StoreJob(Protocol[T_co]):
    """One job on one shard.

    name: its name in the log.
    """

    name: ClassVar[str]
    access: ClassVar[Access]

    def talk(self, table: MessageTable, at: At) -> Conversation[T_co]:
        """Return its conversation."""


class Store(Protocol):
    """Access to the databases of all keyspaces.

    Every method raises a StreamfromError if the backend, or the way to it, refused
    or broke, and limits its own time. A cancelled call leaves no transaction behind.
    """

    async def run(self, table: MessageTable, shard: ShardName, job: StoreJob[T]) -> T:
        """Carry out a job; return the result of its conversation."""

    async def ask(
        self, keyspace: str, shard: ShardName, question: Callable[[str], Conversation[T]]
    ) -> T:
        """Run a query that is not about one table; return the result of its conversation. question: makes it for the database's name."""

    def answering_first(
        self, keyspace: str, shards: Sequence[ShardName]
    ) -> Sequence[ShardName]:
        """Return *shards*, with those that do not respond at the end."""
