"""What a registry asks of the streams that other processes serve: the boundary to `engine.fleet`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol


if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from streamfrom.engine.messaging.dispatch.events import TableEvent
    from streamfrom.engine.messaging.table.message import (
        ClientReceiver,
        ProgressHearer,
        Receiver,
        RowOfStream,
    )
    from streamfrom.engine.sharding.keyspace import ShardName


class Elsewhere(Protocol):
    """The streams of this process at the others, which dispatch shards, and the news for those."""

    def admit(self, receiver: ClientReceiver) -> ClientReceiver:
        """Return what is to be attached here for *receiver*."""
        ...

    def progress_of(self, receiver: Receiver) -> ProgressHearer:
        """Return what hears of the progress of an admitted receiver with what is dispatched here."""
        ...

    def opened(
        self, receiver: ClientReceiver, keyspace: str, table: str, prefetch: int
    ) -> None:
        """Have it served elsewhere as well. prefetch: how many messages it holds at most, wherever they are dispatched; 0 for no limit."""
        ...

    def prefetch_altered(self, keyspace: str, table: str, prefetch: int) -> None:
        """Note that the prefetch of a table is another one now; 0 for no limit."""
        ...

    def wait_over(self, receiver: Receiver) -> None:
        """Let it wait for its first message no longer."""
        ...

    def taken(self, receiver: Receiver) -> None:
        """Note that its socket has taken everything."""
        ...

    def closed(
        self, receiver: Receiver, unsent: Sequence[RowOfStream]
    ) -> Sequence[RowOfStream]:
        """Have it served no more, and give back those of *unsent* that came from elsewhere; return all unsent."""
        ...

    def forget(self, receiver: Receiver, *, has_left: bool) -> None:
        """Let it go, as `Registry.forget`."""
        ...

    async def definitions_changed(self, keyspace: str, names: Collection[str]) -> None:
        """Have the other processes read the definitions of a keyspace, which a statement has changed; wait for them a while.

        names: the tables that may have changed; empty where any may have.
        """
        ...

    async def write_leases(
        self, keyspace: str, shard: ShardName, table: str, ids: tuple[bytes, ...] | None
    ) -> None:
        """Have the shard's dispatcher write leases that it has in memory; wait for it a while."""
        ...

    async def ack_early(
        self,
        keyspace: str,
        shard: ShardName,
        table: str,
        ids: tuple[bytes, ...],
        acked_ns: int,
    ) -> int | None:
        """Have the shard's dispatcher take an early ack; return how many messages it acknowledges, None if it does not."""
        ...

    def happened(self, keyspace: str, table: str, event: TableEvent) -> None:
        """Report to a shard's dispatcher what a commit did."""
        ...
