"""What the streams of this process ask of who dispatches: the boundary to `engine.fleet`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol


if TYPE_CHECKING:
    from streamfrom.engine.messaging.dispatch.events import TableEvent
    from streamfrom.engine.messaging.table.message import ClientReceiver, Receiver, RowOfStream
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName


class Dispatcher(Protocol):
    """Who sends messages to streams: this process alone (`DispatcherHere`), or this one and others (`StreamsElsewhere`)."""

    def attach(self, receiver: ClientReceiver, keyspace: str, name: str) -> MessageTable:
        """Let *receiver* have the messages of a table, which is returned, from now on.

        Raises TableNotFound, or the TableLoadError of a table that cannot be used, or the error that
        `DispatcherHere.end_streams` was given.
        """

    def ready(self, receiver: Receiver) -> None:
        """Note that *receiver* can take another batch: its socket has taken everything."""

    def wait_over(self, receiver: Receiver) -> None:
        """Let *receiver*, a stream with an end, wait for its first message no longer."""

    def detach(self, receiver: Receiver, unsent: Sequence[RowOfStream] = ()) -> None:
        """Send *receiver* nothing more; *unsent* rows, which its socket never took, are released at once.

        What it was sent it holds, until `forget`. Twice is fine, and so is a stream that was ended.
        """

    def forget(self, receiver: Receiver, *, has_left: bool) -> None:
        """Let a detached *receiver* go.

        has_left: the connection of its client has ended, so what it holds is due again soon.
            Otherwise the leases alone hold it.
        """

    def reconfigure(self, table: MessageTable) -> None:
        """Follow a changed definition; streams go on."""

    # What concerns a shard is asked of who dispatches it

    def happened(self, keyspace: str, table: str, event: TableEvent) -> None:
        """Take in what a commit did. table: ANY_TABLE where it may have written to any queue of the shard."""

    async def show_leases(
        self, keyspace: str, shard: ShardName, table: str, ids: tuple[bytes, ...] | None
    ) -> None:
        """Let rows show leases and early acks, of *ids* or all messages, before a statement changes them; wait for it a while."""

    async def ack_early_elsewhere(
        self,
        keyspace: str,
        shard: ShardName,
        table: str,
        ids: tuple[bytes, ...],
        acked_ns: int,
    ) -> int | None:
        """Have another process that dispatches a shard take an early ack, as `DispatcherHere.ack_early`; None if none does."""
        del keyspace, shard, table, ids, acked_ns
        return None

    async def definitions_changed(self, keyspace: str, names: Collection[str]) -> None:
        """Have other processes read the definitions of a keyspace, which a statement has changed; wait for them a while.

        names: the tables that may have changed; empty where any may have.
        """
        del keyspace, names
