"""The streams and news that other members bring to this one, because it dispatches shards."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Protocol

from streamfrom.engine.errors import StoreError, TableNotFound
from streamfrom.engine.fleet import peer_link
from streamfrom.engine.fleet.peer_stream import RemoteReceiver, RowsMissing
from streamfrom.engine.messaging.dispatch.events import Changed
from streamfrom.engine.messaging.table.message_table import MessageTable
from streamfrom.sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from streamfrom.engine.fleet.directory import Member
    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.engine.sharding.keyspace import ShardName


class VisitedMember(Protocol):
    """This member: `engine.fleet.fleet.Fleet`."""

    @property
    def own(self) -> Member:
        """Return what it publishes."""

    def may_send(self, keyspace: str, shard: ShardName) -> bool:
        """Return whether it dispatches a shard at this moment."""

    def look_at(self, keyspace: str, shard: ShardName) -> None:
        """Read the directory of a shard."""

    def gone(self, visit: Visit) -> None:
        """Note that a link is over."""


class Visit:
    """What one link of a member has brought: `LinkHearer`."""

    def __init__(
        self,
        host: VisitedMember,
        registry: Registry,
        link: peer_link.PeerLink[peer_link.FromDispatcher],
    ) -> None:
        self._host = host
        self._link = link
        self._registry = registry
        self._here = registry.here
        self._open: dict[int, RemoteReceiver] = {}
        self._closed: dict[int, RemoteReceiver] = {}
        # Tables of which it sent news; what it could not send any more is unknown.
        self._notified: dict[tuple[str, str, ShardName], None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def heard(self, message: peer_link.ToDispatcher) -> None:
        """Take in what the member says."""
        match message:
            case peer_link.OpenStream():
                self._open_stream(message)
            case peer_link.GiveShare():
                if receiver := self._open.get(message.stream):
                    self._here.give_share(receiver, message.share)
            case peer_link.ProgressElsewhere():
                if receiver := self._open.get(message.stream):
                    self._here.progressed_elsewhere(receiver, message.rows)
            case peer_link.RowsTaken():
                self._taken(message)
            case peer_link.CloseStream():
                self._close_stream(message)
            case peer_link.ForgetStream():
                if receiver := self._closed.pop(message.stream, None):
                    self._here.forget(receiver, has_left=message.has_left)
            case peer_link.StopWaiting():
                if receiver := self._open.get(message.stream):
                    self._here.wait_over(receiver)
            case peer_link.News():
                for event in message.events:
                    self._notified[message.keyspace, message.table, event.shard] = None
                    self._here.happened(message.keyspace, message.table, event)
            case peer_link.Dispatching():
                self._host.look_at(message.keyspace, message.shard)
            case peer_link.DefinitionsChanged():
                self._do(
                    message.number, self._registry.reload(message.keyspace, message.tables)
                )
            case peer_link.ShowLeases():
                leases = self._here.show_leases(
                    message.keyspace, message.shard, message.table, message.ids
                )
                self._do(message.number, leases)
            case peer_link.AckEarly():
                rows = self._here.ack_early(
                    message.keyspace,
                    message.shard,
                    message.table,
                    message.ids,
                    message.acked_ns,
                )
                self._link.send(peer_link.RequestDone(message.number, rows))

    def lost(self, reason: str) -> None:
        """Take the member's clients for gone: what they hold is due again soon, as if they had left.

        A commit that it carried out, and did not report before it died, is looked for.
        """
        self._host.gone(self)
        for keyspace, table, shard in self._notified:
            self._here.happened(keyspace, table, Changed(shard, None))
        for receiver in self._open.values():
            self._here.detach(receiver)
            self._closed[receiver.id] = receiver
        for receiver in self._closed.values():
            self._here.forget(receiver, has_left=True)
        self._open.clear()
        self._closed.clear()

    def withdraw(self, keyspace: str, shard: ShardName, reason: str) -> None:
        """End the streams that cover a shard."""
        for receiver in list(self._open.values()):
            if receiver.opened.keyspace == keyspace and shard in receiver.opened.shards:
                receiver.end(StoreError(reason))

    def close(self) -> None:
        """End the link, which the member hears as lost."""
        self._link.close()

    def _open_stream(self, message: peer_link.OpenStream) -> None:
        if refusal := self._refusal(message):
            self._link.send(refusal)
            return
        receiver = RemoteReceiver(message, self._link.send, self._here.held_by)
        self._open[message.stream] = receiver
        try:
            at = message.keyspace, message.table
            self._here.attach(receiver, *at, message.held, message.share, receiver.report)
        except StreamfromError as error:
            self._link.send(peer_link.StreamEnded(message.stream, str(error), message.held))

    def _refusal(self, message: peer_link.OpenStream) -> peer_link.StreamEnded | None:
        """Return why a stream cannot be served, None if it can."""
        keyspace, host = message.keyspace, self._host
        if away := [shard for shard in message.shards if not host.may_send(keyspace, shard)]:
            names = ", ".join(f"{keyspace}/{shard}" for shard in away)
            reason = f"member {host.own.id} does not dispatch {names}"
            return peer_link.StreamEnded(message.stream, reason, unserved=tuple(away))
        table = self._registry.table(keyspace, message.table)
        if not isinstance(table, MessageTable):
            # The other member knows the table, so it may be this one that has not read it yet.
            self._registry.reload_soon()
            reason = str(table or TableNotFound(keyspace, message.table))
            return peer_link.StreamEnded(message.stream, reason)
        unknown = [column for column in message.columns if column not in table.columns]
        if unknown:
            self._registry.reload_soon()
            return peer_link.StreamEnded(
                message.stream, f"table {table.name} has no column {unknown[0]}"
            )
        return None

    def _do(self, number: int, work: Coroutine[object, object, None]) -> None:
        """Do what a request asks for, and say when it is done."""

        async def do() -> None:
            await work
            self._link.send(peer_link.RequestDone(number))

        task = asyncio.get_running_loop().create_task(do())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _taken(self, message: peer_link.RowsTaken) -> None:
        if receiver := self._open.get(message.stream):
            try:
                if receiver.away.reported(message.rows):
                    self._here.ready(receiver)
            except RowsMissing as missing:
                self._end(str(missing))

    def _close_stream(self, message: peer_link.CloseStream) -> None:
        receiver = self._open.pop(message.stream, None)
        if receiver is None:
            return
        # Kept until ForgetStream: the member may still ack rows, or give them back.
        self._closed[message.stream] = receiver
        try:
            unsent = receiver.away.unsent(message.taken)
        except RowsMissing as missing:
            self._here.detach(receiver)
            self._end(str(missing))
        else:
            self._here.detach(receiver, unsent)

    def _end(self, reason: str) -> None:
        self._link.close()
        self.lost(reason)
