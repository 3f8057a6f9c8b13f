"""What a scheduler wants done to the rows of a shard: an action that carries its own statements.

The shell has a job's conversation run on a connection of its kind (`Store`) and hands back what came of it as one event, whatever
the job is (`engine.messaging.dispatch.events.JobDone`).

A conversation (`engine.messaging.store.conversation`) stands with what it is about; a `Store` only finds a connection and executes.
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
    """On which connection a job runs."""

    # Any: it reads, each statement by itself.
    READ = auto()
    # Any: one transaction, which is right whichever member dispatches the shard by now.
    WRITE = auto()
    # The one that holds the dispatcher's lock, where there is an election: one transaction.
    DISPATCH = auto()
    # As WRITE; but few at a time of a shard, as all queues purge at the same moments.
    UPKEEP = auto()
    # One that is closed behind it, with all locks that it took; statements are given up once their patience is over.
    APART = auto()


@record
class AboutShard:
    """What has happened on a shard, or is to be done about it."""

    shard: ShardName


class StoreJob(Protocol[T_co]):
    """One job on one shard.

    name: what the log calls it.
    """

    name: ClassVar[str]
    access: ClassVar[Access]

    def talk(self, table: MessageTable, at: At) -> Conversation[T_co]:
        """Return its conversation."""


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
