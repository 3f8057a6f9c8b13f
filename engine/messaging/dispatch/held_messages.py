"""The messages that the streams of one table hold: when leases end, which rows are looked at, and which leases are written. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.acks.ack_writes import WriteAcks
from streamfrom.engine.messaging.dispatch.events import ReportProgress, ReportStanding
from streamfrom.engine.messaging.gates.shard_gates import STANDING_NS
from streamfrom.engine.messaging.leases.lease_rows import Look, Shorten, WriteLeases
from streamfrom.engine.messaging.streams.prefetch_window import PrefetchWindow
from streamfrom.engine.messaging.streams.stream_order import NOBODY


if TYPE_CHECKING:
    from streamfrom.engine.messaging.dispatch.events import (
        Acked,
        AckedEarly,
        ProgressedElsewhere,
        TakenOver,
    )
    from streamfrom.engine.messaging.dispatch.shard_state import ShardState
    from streamfrom.engine.messaging.dispatch.table_parts import TableParts
    from streamfrom.engine.messaging.leases.lease_rows import FindLeases
    from streamfrom.engine.messaging.streams.attached_receiver import AttachedReceiver
    from streamfrom.engine.messaging.table.message import LateWrites


# Progress is reported to other dispatchers no more often, because a fast consumer's messages are far from the end of their leases.
REPORT_NS: Final = 10**8


class HeldMessages:
    """The leases of one table, over all its shards.

    look_ns: the earliest next look at the messages of full receivers.
    report_ns: the earliest next report of progress.
    """

    def __init__(self, parts: TableParts) -> None:
        self._parts = parts
        self._shards = parts.shards
        self._receivers = parts.receivers
        self._actions = parts.actions
        self.look_ns = 0
        self.report_ns = 0

    def end_leases(self, now_ns: int) -> None:
        """Free the room of messages that are ready again; a stream that lost one without progress gets little until it makes some."""
        for shard in self._shards.values():
            ended = shard.leases.ended(now_ns)
            self.renew(now_ns)
            if ended and shard.gates.in_flight is not None:
                self._receivers.is_freed = True
            for lease in ended:
                receiver = self._receivers.attached.get(lease.receiver)
                if receiver is not None:
                    shard.lost.lost(lease.id, receiver.id, now_ns)
                    # The client of a stream with an end may only be waiting for the rest of it.
                    is_endless = receiver.rows_left is None
                    if is_endless and now_ns - receiver.progress_ns >= self._wait_ns:
                        receiver.has_stalled = True
                        self._report(receiver)
                        self._receivers.change_window(receiver, PrefetchWindow.lost)
                self._receivers.give_room(lease.receiver)

    @property
    def _wait_ns(self) -> int:
        return self._parts.table.properties.ack_wait_ns

    def renew(self, now_ns: int) -> None:
        """Write leases that would have ended soon, and that their streams' progress has extended."""
        if renewable := self._parts.streams.renewable:
            self._parts.streams.renewable = []
            for batch in renewable:
                self._shards[batch.shard].renew((batch,), now_ns)

    def progressed_elsewhere(self, event: ProgressedElsewhere, now_ns: int) -> None:
        """Extend leases by progress with messages of other processes."""
        self._parts.streams.reached_elsewhere(event.receiver, event.rows, now_ns)
        if (receiver := self._receivers.attached.get(event.receiver)) is not None:
            receiver.progress_ns = now_ns

    def report_progress(self, now_ns: int) -> None:
        """Report the progress of streams with other dispatchers: a slow stream's at once, and each one's seldom."""
        streams = self._parts.streams
        if not streams.progressed or now_ns < self.report_ns:
            return
        self.report_ns = now_ns + REPORT_NS
        progressed, streams.progressed = streams.progressed, {}
        for number, row in progressed.items():
            receiver = self._receivers.attached.get(number)
            if receiver is not None and receiver.reports_progress:
                self._actions.append(ReportProgress(number, row))

    def acked(self, event: Acked, now_ns: int) -> None:
        """Forget messages that were acked or deleted, and free their room."""
        shard = self._shards[event.shard]
        self._gone(shard, event.ids, now_ns)
        self._shown_acked(shard, event.ids, now_ns)

    def acked_early(self, event: AckedEarly, now_ns: int) -> None:
        """Forget messages whose acks are written soon, and free their room. Messages that wait for them wait for their rows."""
        shard = self._shards[event.shard]
        shard.early_acks.add(event.ids, event.acked_ns, now_ns)
        self._gone(shard, event.ids, now_ns)

    def acks_written(self, shard: ShardState, result: LateWrites | None, now_ns: int) -> None:
        """Process which early acks the rows show."""
        locked, refused = (None, {}) if result is None else (result.locked, result.refused)
        again_ns = self._parts.refuse(shard, refused, now_ns)
        ids = shard.early_acks.written(locked, now_ns, again_ns)
        shard.set_aside.over(ids)
        for ident in ids:
            shard.queue.remove(ident)  # a running poll may have read the row as it was before
        self._shown_acked(shard, ids, now_ns)

    def _shown_acked(self, shard: ShardState, ids: Collection[bytes], now_ns: int) -> None:
        shard.groups.gone(ids)
        if shard.order is not None:
            shard.freed(ids, now_ns)
            for run in shard.claims.values():
                run.gone.update(ids)

    def _gone(self, shard: ShardState, ids: Collection[bytes], now_ns: int) -> None:
        for ident in ids:
            shard.queue.remove(ident)
        shard.set_aside.over(ids)
        if shard.unwritten:
            shard.unwritten.forget(ids)
        for batch, count in shard.leases.give_back_all(ids, now_ns).items():
            number = batch.stream.receiver
            if number != NOBODY:
                shard.counters.ack_latency.observe(now_ns - batch.sent_ns, count)
            self._receivers.acted(number, count, now_ns)

    def look_at_full(self, now_ns: int) -> None:
        """Look at receivers that are full while messages are ready, and log those that stall."""
        if not self._receivers.full or now_ns < self.look_ns:
            return
        firsts_ns = [shard.queue.first_ns() for shard in self._shards.values()]
        if not any(first_ns is not None and first_ns <= now_ns for first_ns in firsts_ns):
            return
        self.look_ns = now_ns + STANDING_NS
        for number in self._receivers.full:
            receiver = self._receivers.attached[number]
            full_ns = now_ns - (receiver.full_since_ns or 0)
            if full_ns >= STANDING_NS:
                for shard in self._shards.values():
                    # A later end is an extension: another proxy's heartbeats are not known either.
                    shard.leases.suspect(shard.leases.ids_of(number), keeps_leases=True)
            if receiver.full_since_ns is not None and 2 * full_ns >= self._wait_ns:
                receiver.has_stalled = True
                # Work may take longer than half a wait. A consumer that has never acked anything is logged at once.
                if not receiver.has_worked:
                    self._report(receiver)
        for shard in self._shards.values():
            self.look_after(shard, now_ns)

    def _report(self, receiver: AttachedReceiver) -> None:
        """Log a stream that holds all it may and makes no progress."""
        if receiver.is_reported or receiver.full_since_ns is None:
            return
        receiver.is_reported = True
        is_collecting = receiver.window is not None and not receiver.has_worked
        self._actions.append(
            ReportStanding(receiver.id, receiver.held, receiver.full_since_ns, is_collecting)
        )

    def suspect(
        self, shard: ShardState, ids: tuple[bytes, ...] | None, *, keeps_leases: bool = False
    ) -> None:
        """Note that rows may have changed, so that those that streams hold are looked at."""
        shard.leases.suspect(ids, keeps_leases=keeps_leases)
        for run in shard.claims.values():
            # An ordered claim may win other rows than requested.
            is_ordered = shard.order is not None
            run.is_suspect |= (
                is_ordered or ids is None or any(ident in run.keys for ident in ids)
            )

    def looked(self, shard: ShardState, time_next_ns: Mapping[bytes, int], now_ns: int) -> None:
        """Process rows that may have changed: when each existing, unacked one is due."""
        given_back, prolonged = shard.looked(time_next_ns, now_ns)
        if gone := [lease.id for lease in given_back if lease.id not in time_next_ns]:
            self._gone(shard, gone, now_ns)
            # The id may have been inserted again since the look.
            shard.polls.wanted |= shard.leases.is_to_look
        for lease in given_back:
            self._receivers.acted(lease.receiver, 1, now_ns)
        for lease in prolonged:
            if lease.receiver in self._receivers.attached:
                self._receivers.attached[lease.receiver].acted(now_ns)

    def taken_over(self, event: TakenOver, now_ns: int) -> None:
        """Assign messages to the receiver that a former dispatcher sent them to."""
        shard = self._shards[event.shard]
        count = shard.leases.take_over(event.receiver, event.ids, now_ns)
        self._receivers.hold(event.receiver, count, now_ns)

    def leases_found(
        self,
        shard: ShardState,
        job: FindLeases,
        until_ns: Mapping[bytes, int],
        failure: str | None,
        now_ns: int,
    ) -> None:
        """Process the messages that a former dispatcher has in flight, and the ends of their leases."""
        limit = shard.gates.in_flight
        if limit is None or limit.reading is not job:
            return  # another process has dispatched the shard since
        limit.reading = None
        if failure is not None:
            shard.claiming.failed(failure, now_ns, self._parts.grace_ns)
            return
        shard.claiming.over()
        limit.is_known = True
        shard.leases.found(until_ns, now_ns)

    def look_after(self, shard: ShardState, now_ns: int) -> None:
        """Look at rows that may have changed, make messages of receivers that left due sooner, and write leases."""
        if ids := shard.leases.next_look():
            self._actions.append(Look(shard.name, ids))
        if shard.is_dispatched and (left := shard.leaving.next(now_ns)):
            self._actions.append(Shorten(shard.name, *left))
        if leases := shard.next_write(now_ns):
            self._actions.append(WriteLeases(shard.name, leases))
        if acks := shard.early_acks.next_write(now_ns):
            self._actions.append(WriteAcks(shard.name, acks))
