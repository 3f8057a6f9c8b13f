"""How the streams of one message table come and go: opened, detached, ended, and finished once they have all their rows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from streamfrom.engine.messaging.dispatch.events import End, Finish, KeepsShare, WantShare
from streamfrom.engine.messaging.streams.attached_receiver import AttachedReceiver


if TYPE_CHECKING:
    from streamfrom.engine.messaging.dispatch.events import Attached
    from streamfrom.engine.messaging.dispatch.sending import Sending
    from streamfrom.engine.messaging.dispatch.shard_state import ShardState
    from streamfrom.engine.messaging.dispatch.table_parts import TableParts
    from streamfrom.engine.messaging.table.message import ClaimedRow
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.sqlparse_ext.errors import StreamfromError


class Attachments:
    """The streams of one table as they come and go.

    sending: releases rows that could not be sent to a stream that has gone.
    """

    def __init__(self, parts: TableParts, sending: Sending) -> None:
        self._parts = parts
        self._shards = parts.shards
        self._streams = parts.streams
        self._receivers = parts.receivers
        self._actions = parts.actions
        self._sending = sending

    def attach(self, event: Attached, now_ns: int) -> None:
        """Add a stream that has been opened."""
        receiver = AttachedReceiver(
            event.receiver,
            event.shards,
            event.columns,
            event.prefetch,
            limit=0,
            opened_ns=now_ns,
            rows_left=event.rows_max,
            keys=event.keys,
            share=event.share,
            owes_answer=event.share is not None,
            # A receiver that gets everything from here needs no order kept elsewhere.
            reports_progress=event.reports_progress
            and (event.receiver > 0 or event.shards != self._shards.keys()),
            window_first=event.window_first,
        )
        self._streams.reporting |= receiver.reports_progress
        self._receivers.configure(receiver, self._parts.table.properties, now_ns)
        self._receivers.add(receiver)
        held = sum(len(shard.leases.ids_of(receiver.id)) for shard in self._shards.values())
        self._receivers.hold(receiver.id, held, now_ns)
        self._receivers.limited(receiver)
        for shard in self._shards.values():
            if receiver.covers(shard.name):
                shard.join(now_ns)
                self._name_keys(shard, receiver)

    def detach(self, receiver: int, unsent: Sequence[ClaimedRow], now_ns: int) -> None:
        """Send a stream nothing more; twice is fine. unsent: rows that its socket never took, which are released."""
        by_shard: dict[ShardName, list[ClaimedRow]] = {}
        for row in unsent:
            by_shard.setdefault(row.shard, []).append(row)
        for name, unsent_rows in by_shard.items():
            leases = [
                self._shards[name].leases.give_back_of(receiver, row.id) for row in unsent_rows
            ]
            rows = [
                # Its lease may have been extended while its socket did not take it.
                row if lease is None else row._replace(due_next_ns=lease.until_ns)
                for row, lease in zip(unsent_rows, leases, strict=True)
            ]
            self._sending.release(self._shards[name], rows, now_ns)
        gone = self._receivers.remove(receiver)
        for shard in self._shards.values():
            if gone is not None and gone.covers(shard.name):
                shard.leave(now_ns)
                self._name_keys(shard, gone)

    def _name_keys(self, shard: ShardState, receiver: AttachedReceiver) -> None:
        """Have the queue read the keys that streams name separately, now that *receiver* has come or gone."""
        if receiver.keys is not None and shard.queue.name_keys(
            self._receivers.named_keys(shard.name)
        ):
            shard.polls.named_wanted = True

    def left(self, receiver: int, left_ns: int, now_ns: int) -> None:
        """Make the messages of a detached receiver due again soon: its client leaves at *left_ns*."""
        release_after_ns = self._parts.table.properties.release_after_ns
        if release_after_ns is None:
            return
        if (stream := self._streams.get(receiver)) is not None:
            stream.is_over = True
        for shard in self._shards.values():
            # Another member's client may continue at the next dispatcher, though the link to its member has ended.
            is_gone = receiver > 0 or shard.is_dispatched
            if is_gone and (held := shard.leases.ids_of(receiver)):
                shard.leaving.add(receiver, left_ns + release_after_ns)
                shard.show_leases(held, now_ns)

    def report_shares(self, now_ns: int) -> None:
        """Report how many messages receivers may hold whose share has changed, and for which more is due."""
        kept, self._receivers.kept = self._receivers.kept, {}
        self._actions.extend(KeepsShare(*each) for each in kept.items())
        due = [
            shard
            for shard in self._shards.values()
            if shard.is_dispatched and shard.queue.due(now_ns, at_most=1)
        ]
        if not due or self._parts.table.properties.paused:
            return
        for number in list(self._receivers.short):
            receiver = self._receivers.attached[number]
            if any(
                receiver.covers(shard.name)
                and shard.queue.due(now_ns, at_most=1, keys=receiver.keys)
                for shard in due
            ):
                receiver.has_wanted = True
                del self._receivers.short[number]
                self._actions.append(WantShare(number))

    def end(self, receivers: Iterable[AttachedReceiver], error: StreamfromError) -> None:
        """End streams with *error*."""
        for receiver in receivers:
            self._actions.append(End(receiver.id, error))
            self.detach(receiver.id, (), 0)

    def finish(self, now_ns: int) -> None:
        """Finish the streams that have all the rows they asked for, or all there are.

        A stream with rows does not wait for a failing shard: its client can work on them.
        """
        for receiver in list(self._receivers.finishing.values()):
            if receiver.has_batch or receiver.is_reserved:
                continue
            if receiver.rows_left == 0 or all(
                self._parts.table.properties.paused
                or shard.gates.is_closed(now_ns)
                or shard.has_nothing(now_ns, receiver.keys)
                or ((receiver.sent or receiver.has_rows_elsewhere) and shard.is_failing)
                for shard in self._shards.values()
                if receiver.covers(shard.name)
            ):
                self._actions.append(Finish(receiver.id))
                self.detach(receiver.id, (), now_ns)
