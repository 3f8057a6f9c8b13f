"""The interface between the streams of this process and dispatchers: the boundary to `engine.fleet`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol


if TYPE_CHECKING:
    from streamfrom.engine.messaging.dispatch.events import TableEvent
    from streamfrom.engine.messaging.table.message import ClientReceiver, Receiver, RowOfStream
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName


class Dispatcher(Protocol):
    """Sends messages to streams: this process only (`DispatcherHere`), or this one and others (`StreamsElsewhere`)."""

    def attach(self, receiver: ClientReceiver, keyspace: str, name: str) -> MessageTable:
        """Start sending messages of a table to *receiver*; return the table.

        Raises TableNotFound, or the TableLoadError of a table that cannot be used, or the error from
        `DispatcherHere.end_streams`.
        """

    def ready(self, receiver: Receiver) -> None:
        """Note that *receiver* can take another batch: its socket has taken everything."""

    def wait_over(self, receiver: Receiver) -> None:
        """Stop *receiver*, a stream with an end, waiting for its first message."""

    def detach(self, receiver: Receiver, unsent: Sequence[RowOfStream] = ()) -> None:
        """Send *receiver* nothing more; release *unsent* rows, which its socket never took, at once.

        It holds the messages it was sent until `forget`. Twice is fine, and so is a stream that was ended.
        """

    def forget(self, receiver: Receiver, *, has_left: bool) -> None:
        """Forget a detached *receiver*.

        has_left: the connection of its client has ended, so its messages are due again soon.
            Otherwise they wait for the end of their leases.
        """

    def reconfigure(self, table: MessageTable) -> None:
        """Apply a changed definition; streams continue."""

    # Requests to the dispatcher of a shard

    def happened(self, keyspace: str, table: str, event: TableEvent) -> None:
        """Process the effect of a commit. table: ANY_TABLE if it may have written to any queue of the shard."""

    async def show_leases(
        self, keyspace: str, shard: ShardName, table: str, ids: tuple[bytes, ...] | None
    ) -> None:
        """Write leases and early acks, of *ids* or all messages, before a statement changes the rows; wait for it a while."""

    async def ack_early_elsewhere(
        self,
        keyspace: str,
        shard: ShardName,
        table: str,
        ids: tuple[bytes, ...],
        acked_ns: int,
    ) -> int | None:
        """Have the dispatcher of a shard, another process, take an early ack, as `DispatcherHere.ack_early`; None if none does."""
        del keyspace, shard, table, ids, acked_ns
        return None

    async def definitions_changed(self, keyspace: str, names: Collection[str]) -> None:
        """Have other processes read the definitions of a keyspace, which a statement has changed; wait for them a while.

        names: the tables that may have changed; empty if any may have.
        """
        del keyspace, names
