"""What a scheduler wants done to the rows of a shard: an action that carries its own statements.

The shell runs a job's conversation on a connection of its kind (`engine.messaging.shell.message_store.Store`) and hands
back what came of it as one event, whatever the job is (`engine.messaging.dispatch.events.JobDone`).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import At, Conversation
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName


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
