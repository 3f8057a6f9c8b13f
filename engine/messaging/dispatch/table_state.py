"""The scheduler of one message table: its streams, its due messages, and what to do next.

``handle(event, now_ns)`` takes an event and returns actions; it does
nothing itself. All streams of the table and all its shards meet here, so that a receiver never
gets a second batch before it has taken the first, whichever shard it comes from. Its parts share
one `TableParts`: the receivers that can be given rows (`dispatch.receivers`), claims and deliveries (`dispatch.sending`), streams that come
and go (`dispatch.attachments`), and the messages that they hold (`dispatch.held_messages`).

**Idle.** A shard that no receiver covers is not polled, and drops its keys a second after the last
one has left. Its first receiver starts a poll, unless a message is known to be due.

**Steady.** The queue of each shard (`queue.shard_queue`) holds the keys due soonest, and gets more by polls (`queue.poll`). When keys are
due and receivers are ready, one claim takes rows for all ready receivers that want the same
columns, like a group commit. CLAIMS_IN_FLIGHT_MAX claims may run on a shard at once; messages that
become due meanwhile go into the next. A receiver is reserved from the claim until its
socket can take more. A won row is delivered, and waits in the queue as a timer for the moment
that the claim wrote. A row that was not won belongs to another proxy and waits for the moment that this one
wrote; or it is acked, and is forgotten; or it is locked, and is tried again soon. Rows whose receiver has left go to another ready
one, or are released: the claim is undone, and they are due again at once.

**Withheld.** Another process dispatches the shard, or may do so: the shard is neither polled nor
claimed from, claims under way are released, and streams keep the messages they were sent.

**Failing.** A claim or poll that failed is tried again after 50 ms, doubling to 2 s. A shard
that fails without a break for the grace period loses the streams that cover it.

See `leases.unwritten_leases` and `acks.early_acks` for leases and acks that exist only in memory for a while, and
`gates.shard_gates` for messages that are held back while everything else continues.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import StreamLost, UnknownColumn
from streamfrom.engine.messaging.acks.ack_writes import WriteAcks
from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch import events
from streamfrom.engine.messaging.dispatch.attachments import Attachments
from streamfrom.engine.messaging.dispatch.held_messages import HeldMessages
from streamfrom.engine.messaging.dispatch.sending import Sending
from streamfrom.engine.messaging.dispatch.shard_state import ShardState
from streamfrom.engine.messaging.dispatch.table_parts import TableParts
from streamfrom.engine.messaging.leases import lease_rows
from streamfrom.engine.messaging.order.group_table import Fire
from streamfrom.engine.messaging.queue.poll import Poll
from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
from streamfrom.engine.messaging.streams.prefetch_window import PrefetchWindow
from streamfrom.engine.messaging.streams.stream_order import Streams
from streamfrom.engine.messaging.table.message import FOREVER_NS, Shortenings, Tried


if TYPE_CHECKING:
    from streamfrom.engine.messaging.queue.poll import PollRequest
    from streamfrom.engine.messaging.table.groups import FireResult
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName


# Polled keys if streams with an end want only a few: this many cost a quarter of a millisecond.
POLL_KEYS_MIN: Final = 100
# A wall clock that goes back further was set: times planned by it would be late by more than a retry is.
SET_BACK_NS: Final = 10**9
_LAST_CLAIM: Final = attrgetter("last_claim")


class TableState:
    """The scheduler of one message table, over all shards of its keyspace.

    receivers: the open streams.
    """

    def __init__(self, table: MessageTable, shards: Iterable[ShardName], grace_ns: int) -> None:
        properties = table.properties
        streams = Streams()
        self._shards = {
            name: ShardState(
                name,
                ShardQueue(
                    properties.cache_size, newest=properties.newest, fair=properties.fair
                ),
                streams,
            )
            for name in shards
        }
        self._parts = TableParts(table, grace_ns, self._shards, streams)
        self._parts.limit_shards()
        self.receivers = self._parts.receivers
        self._actions = self._parts.actions
        self._held = HeldMessages(self._parts)
        self._sending = Sending(self._parts, self._held)
        self._attachments = Attachments(self._parts, self._sending)
        self._now_ns = 0

    # The whole interface: handle, wake_ns, and the visible state

    def handle(self, event: events.Event, now_ns: int) -> list[events.Action]:
        """Return the actions for *event*, in order."""
        if now_ns < self._now_ns - SET_BACK_NS:
            self._clock_set_back(self._now_ns - now_ns, now_ns)
        self._now_ns = now_ns
        self.receivers.is_freed = False
        self._held.end_leases(now_ns)
        self._held.look_at_full(now_ns)
        match event:
            # The events that come with each message first: classes are compared one after the other.
            case events.Acked():
                self._held.acked(event, now_ns)
            case events.Due():
                self._due(event, now_ns)
            case events.JobDone():
                self._done(event, now_ns)
            case events.ReceiverReady():
                self.receivers.is_free(event.receiver)
            case events.Tick():
                pass
            case events.Attached():
                self._attachments.attach(event, now_ns)
            case events.Detached():
                self._attachments.detach(event.receiver, event.unsent, now_ns)
            case events.Left():
                self._attachments.left(event.receiver, now_ns + event.grace_ns, now_ns)
            case events.TakenOver():
                self._held.taken_over(event, now_ns)
            case events.WaitOver():
                if ending := self.receivers.attached.get(event.receiver):
                    ending.has_rows_elsewhere |= event.has_rows_elsewhere
                    self.receivers.finishing[ending.id] = ending
            case events.ProgressedElsewhere():
                self._held.progressed_elsewhere(event, now_ns)
            case events.ShareGiven():
                self.receivers.give_share(event.receiver, event.share)
            case events.AckedEarly():
                self._held.acked_early(event, now_ns)
            case events.Changed():
                shard = self._shards[event.shard]
                shard.polls.wanted = True
                self._try_again(shard, event.ids or (), now_ns)
                shard.groups.changed(event.ids)
                if event.ids is not None:
                    shard.leases.progress(event.ids, now_ns)
                self._held.suspect(shard, event.ids, keeps_leases=event.keeps_leases)
                if event.ids is not None and not event.keeps_leases:
                    shard.rescheduled(event.ids, now_ns)
                if event.ids is None or not event.keeps_leases:
                    shard.freed(event.ids, now_ns)
            case events.Touched():
                self._try_again(self._shards[event.shard], event.ids, now_ns)
            case events.AckedUnnamed():
                shard = self._shards[event.shard]
                shard.groups.changed(None)
                self._held.suspect(shard, None)
                shard.freed(None, now_ns)
            case events.LeasesWanted():
                self._shards[event.shard].show_leases(event.ids, now_ns)
                self._shards[event.shard].early_acks.hurry()
            case events.PurgeRefused():
                shard = self._shards[event.shard]
                shard.set_aside.over(event.over)
                self._parts.refuse(shard, event.refused, now_ns)
            case events.Reconfigured():
                self._reconfigured(event, now_ns)
            case events.TryAgain():
                for shard in self._shards.values():
                    if shard.set_aside.may_try_all(now_ns):
                        self._try_again(shard, [*shard.set_aside.rows], now_ns)
            case events.ShardChecked():
                self._checked(self._shards[event.shard], event.trouble, now_ns)
            case events.Elected():
                self._shards[event.shard].elected(now_ns)
                self.receivers.dispatchers_changed()
            case events.Deposed():
                self._shards[event.shard].deposed(event.reason, now_ns, self._parts.grace_ns)
                self.receivers.dispatchers_changed()
            case events.TableEnded():
                self._attachments.end(list(self.receivers.attached.values()), event.error)
                for shard in self._shards.values():
                    shard.show_leases(None, now_ns)
                    shard.early_acks.hurry()
        self._held.renew(now_ns)
        self._held.report_progress(now_ns)
        self._settle_after(event, now_ns)
        if self.receivers.finishing:
            self._attachments.finish(now_ns)
        if self.receivers.kept or self.receivers.short:
            self._attachments.report_shares(now_ns)
        actions = self._actions.copy()
        self._actions.clear()
        return actions

    def free(self, receivers: Iterable[int], now_ns: int) -> bool:
        """Note that sockets have taken their rows; return whether a ReceiverReady of one must follow, which serves all."""
        for receiver in receivers:
            self.receivers.is_free(receiver)
        return bool(
            self.receivers.finishing
            or self.receivers.kept
            or self.receivers.short
            or any(shard.has_more(now_ns) for shard in self._shards.values())
        )

    def wake_ns(self) -> int | None:
        """Return when the next Tick is due, or None when only an event can change anything."""
        wake_ns = FOREVER_NS
        for shard in self._shards.values():
            wake_ns = min(wake_ns, shard.wake_ns, shard.writes_ns)
            # Without a ready receiver a due key waits for one, not for the clock.
            if self.receivers.ready and shard.wake_ready_ns < wake_ns:
                wake_ns = shard.wake_ready_ns
        if self.receivers.short:
            moments = (shard.queue.first_ns() for shard in self._shards.values())
            # Messages that are due now have keys that no ready receiver named, or the receivers have them already.
            later = [
                moment for moment in moments if moment is not None and moment > self._now_ns
            ]
            wake_ns = min(wake_ns, *later, FOREVER_NS)
        if self._parts.streams.progressed:
            wake_ns = min(wake_ns, self._held.report_ns)
        if self.receivers.full:
            for shard in self._shards.values():
                end_ns, first_ns = shard.leases.first_look_ns(), shard.queue.first_ns()
                if end_ns is not None:
                    wake_ns = min(wake_ns, end_ns)
                    if first_ns is not None:
                        wake_ns = min(wake_ns, max(first_ns, self._held.look_ns))
        return wake_ns if wake_ns < FOREVER_NS else None

    def set_grace(self, grace_ns: int) -> None:
        """Set how long a stream survives a shard that fails without a break."""
        self._parts.grace_ns = grace_ns

    @property
    def table(self) -> MessageTable:
        """Return the table as it is scheduled now."""
        return self._parts.table

    @property
    def shards(self) -> Collection[ShardState]:
        """Return the shards."""
        return self._shards.values()

    def shard(self, name: ShardName) -> ShardState:
        """Return one of them."""
        return self._shards[name]

    def held_by(self, receiver: int) -> dict[ShardName, tuple[bytes, ...]]:
        """Return the messages that a receiver holds, by shard."""
        held = {name: tuple(s.leases.ids_of(receiver)) for name, s in self._shards.items()}
        return {name: ids for name, ids in held.items() if ids}

    @property
    def held(self) -> int:
        """Return how many messages this process's clients hold, including streams that are over."""
        return sum(shard.leases.of_clients for shard in self._shards.values())

    # News of messages

    def _due(self, event: events.Due, now_ns: int) -> None:
        shard = self._shards[event.shard]
        if shard.hears_news:
            shard.counters.has_new(event.keys, now_ns)
            self._try_again(shard, (key.id for key in event.keys), now_ns)
            # A poll may have seen the row before its producer's OK arrived here, and the message may have been sent.
            # Its row does not show that, so a claim would send it a second time.
            news = [key for key in event.keys if not shard.queue.is_taken(key.id)]
            if shard.queue.hear(news, now_ns):
                shard.polls.wanted = True
            # Only the rows show their key.
            shard.polls.named_wanted = True
        if shard.leases or shard.claims:
            self._held.suspect(shard, tuple(key.id for key in event.keys))

    def _try_again(self, shard: ShardState, idents: Iterable[bytes], now_ns: int) -> None:
        """Write rows again at once that the server refused, and that a client has changed."""
        if changed := shard.set_aside.changed(idents, now_ns):
            shard.polls.wanted = True
            shard.unwritten.hurry(changed)
            if any(ident in shard.early_acks for ident in changed):
                shard.early_acks.hurry()

    # Results of jobs

    def _done(self, event: events.JobDone, now_ns: int) -> None:
        """Process the result of a job; it is None if the job failed."""
        job, result, failure = event.job, event.result, event.failure
        shard = self._shards[job.shard]
        match job:
            case Claim():
                if failure is None:
                    self._sending.claimed(shard, job, result, now_ns)
                else:
                    self._sending.claim_failed(shard, job, failure, now_ns)
            case Poll():
                if failure is None:
                    interval_ns = self._parts.table.properties.poller_interval_ns
                    shard.polled(result, now_ns, interval_ns)
                else:
                    shard.polls.failed(failure, now_ns, self._parts.grace_ns)
            case lease_rows.Release():
                self._sending.released(shard, job, result, now_ns)
            case lease_rows.Look():
                if failure is None:
                    self._held.looked(shard, result, now_ns)
                else:
                    shard.leases.look_failed(now_ns)
            case lease_rows.FindLeases():
                self._held.leases_found(shard, job, result, failure, now_ns)
            case lease_rows.Shorten():
                found = Shortenings() if result is None else result
                self._parts.refuse(shard, found.refused, now_ns)
                shard.polls.wanted |= shard.leaving.shortened(job.receiver, found.ids, now_ns)
            case lease_rows.WriteLeases():
                refused = {} if result is None else result.refused
                again_ns = self._parts.refuse(shard, refused, now_ns)
                put_back = shard.wrote(result, now_ns, again_ns)
                self._sending.release(shard, put_back, now_ns)
            case WriteAcks():
                self._held.acks_written(shard, result, now_ns)
            case Fire():
                self._fired(shard, result, now_ns)

    def _fired(self, shard: ShardState, result: FireResult | None, now_ns: int) -> None:
        properties = self._parts.table.properties
        if dead := shard.groups.answered(result, now_ns, properties.poller_interval_ns):
            self._actions.append(events.ReportDeadMembers(shard.name, tuple(dead)))
        if result is not None:
            shard.set_aside.over(key.id for key in result.fired)
            self._parts.refuse(shard, result.refused, now_ns)
        if result is not None and shard.hears_news:
            shard.polls.wanted |= shard.queue.hear(result.fired, now_ns)

    # Settings and health

    def _clock_set_back(self, by_ns: int, now_ns: int) -> None:
        """Plan everything again from this moment that was planned by the former clock."""
        self._parts.streams.clock_set_back(by_ns)
        for shard in self._shards.values():
            shard.clock_set_back(by_ns, now_ns)
        for receiver in self.receivers.attached.values():
            receiver.gathering_since_ns = None
            self.receivers.change_window(receiver, PrefetchWindow.clock_set_back)
        self._held.look_ns = self._held.report_ns = now_ns

    def _reconfigured(self, event: events.Reconfigured, now_ns: int) -> None:
        self._parts.table = event.table
        properties = event.table.properties
        known = set(event.table.columns)
        for receiver in list(self.receivers.attached.values()):
            missing = [column for column in receiver.columns if column not in known]
            if missing:
                self._attachments.end([receiver], UnknownColumn(missing[0]))
                continue
            self.receivers.configure(receiver, properties, now_ns)
            self.receivers.limited(receiver)
        for shard in self._shards.values():
            shard.queue.configure(
                properties.cache_size,
                newest=properties.newest,
                fair=properties.fair,
                now_ns=now_ns,
            )
            shard.polls.wanted = True
        self._parts.limit_shards(now_ns)

    def _checked(self, shard: ShardState, trouble: str | None, now_ns: int) -> None:
        if trouble is not None:
            shard.health.failed(trouble, now_ns, self._parts.grace_ns)
            return
        for each in (shard.claiming, shard.polls.trouble, shard.health):
            each.over()
        shard.polls.wanted = True

    # After every event

    def _settle_after(self, event: events.Event, now_ns: int) -> None:
        """Settle the shards that *event* can affect."""
        match event:
            # Nearly every single ack comes here: settling was a twelfth of the cost of an early one. So do the claims of
            # lone messages, of whose cost it was a tenth.
            case events.Acked() | events.AckedEarly() | events.JobDone() if self._is_quiet(
                event, now_ns
            ):
                self._shards[event.shard].wake_for_first(now_ns)
            case (
                events.ReceiverReady()
                | events.WaitOver()
                | events.ShareGiven()
                | events.ProgressedElsewhere()
            ):
                self._serve(now_ns)
            case events.Tick():
                for shard in self._in_turn():
                    wake_ns = min(shard.wake_ns, shard.wake_ready_ns, shard.writes_ns)
                    if wake_ns <= now_ns:
                        self._settle(shard, now_ns)
                if self.receivers.is_freed:
                    self._serve(now_ns)
            case (
                events.Attached()
                | events.Detached()
                | events.Left()
                | events.Reconfigured()
                | events.TryAgain()
                | events.TableEnded()
            ):
                for shard in self._shards.values():
                    self._settle(shard, now_ns)
            case events.Touched() if not self._shards[event.shard].set_aside:
                return
            case _:
                shard = self._shards[event.shard]
                if self.receivers.is_freed:
                    # An ack makes room for the shard of its message, which would keep the stream for itself.
                    self._serve(now_ns, before=shard.last_claim)
                self._settle(shard, now_ns)
                if self.receivers.is_freed:
                    self._serve(now_ns)

    def _is_quiet(
        self, event: events.Acked | events.AckedEarly | events.JobDone, now_ns: int
    ) -> bool:
        """Return whether an ack or the end of a claim leaves no work now."""
        if self.receivers.is_freed:
            return False
        shard = self._shards[event.shard]
        if not isinstance(event, events.JobDone):
            return shard.is_quiet(now_ns)
        return isinstance(event.job, Claim) and shard.is_quiet(now_ns, has_claimed=True)

    def _serve(self, now_ns: int, before: int = FOREVER_NS) -> None:
        """Let the shards with due keys use the ready receivers, in turn; only shards served *before*."""
        for shard in self._in_turn():
            if not self.receivers.ready or shard.last_claim >= before:
                return
            if shard.has_more(now_ns):
                self._settle(shard, now_ns)

    def _in_turn(self) -> list[ShardState]:
        """Return the shards, least recently served first: one that always has due messages starves no other."""
        return sorted(self._shards.values(), key=_LAST_CLAIM)

    def _settle(self, shard: ShardState, now_ns: int) -> None:
        """Start claims and polls, and set the next wake-up."""
        self._held.look_after(shard, now_ns)
        if not shard.receivers:
            if shard.is_dispatched and now_ns < shard.lingers_until_ns:
                shard.linger()
            else:
                shard.rest()
            return
        lost_ns = shard.lost_ns(self._parts.grace_ns)
        if lost_ns <= now_ns:
            self._lose(shard)
            return
        if not shard.is_dispatched:
            shard.rest()
            shard.wake_ns = lost_ns
            return
        self._sending.claim(shard, now_ns)
        table = self._parts.table
        in_spans = (
            table.time_index is not None and table.has_priority and not table.priority_nullable
        )
        request = shard.polls.start(now_ns, shard.order, in_spans=in_spans)
        if request is not None:
            self._actions.append(Poll(shard.name, self._bounded(shard, request)))
        if shard.groups.next_ns() <= now_ns:
            left_out = shard.set_aside.left_out(Tried.FIRE, now_ns)
            if (wanted := shard.groups.next(now_ns, frozenset(left_out))) is not None:
                self._actions.append(Fire(shard.name, wanted))
        shard.settled(now_ns, lost_ns)

    def _bounded(self, shard: ShardState, request: PollRequest) -> PollRequest:
        """Return *request* limited to what the streams can use, if all of them have an end."""
        wanted = 0
        for receiver in self.receivers.attached.values():
            if receiver.covers(shard.name):
                if receiver.rows_left is None:
                    return request
                wanted += receiver.rows_left
        # Twice as much, so that after they are served another poll is not due at once.
        return replace(request, limit=min(request.limit, 2 * wanted + POLL_KEYS_MIN))

    def _lose(self, shard: ShardState) -> None:
        cause = next(t.cause for t in shard.troubles() if t.since_ns is not None)
        grace_s = self._parts.grace_ns / 10**9
        error = StreamLost(self._parts.table.keyspace, shard.name, grace_s, cause)
        covering = [r for r in self.receivers.attached.values() if r.covers(shard.name)]
        self._attachments.end(covering, error)
