"""One message table: who waits for its messages, which are due, and what to do about it.

``handle(event, now_ns)`` takes what has happened and returns what is to be done; it does
nothing itself. All streams of the table and all its shards meet here, so that a receiver never
gets a second batch before it has taken the first, whichever shard it comes from.

**Idle.** A shard that no receiver covers is not polled and holds no keys. Its first receiver
starts a poll.

**Steady.** The queue of each shard (`engine.messaging.shard_queue`) holds the keys due soonest. When keys are
due and receivers are ready, one claim takes rows for all ready receivers that want the same
columns, like a group commit; CLAIMS_IN_FLIGHT_MAX claims may run on a shard at once, and what
becomes due meanwhile goes into the next. A receiver is reserved from the claim until its
socket can take more. A won row is delivered, and waits in the queue as a timer for the moment
the claim wrote. A row that was not won is another proxy's, and waits for the moment that it
wrote; or acked, and is forgotten; or locked, and is tried again after a millisecond, then two,
doubling to a second.

**Lazy leases.** Where the table says so, a message that was never sent is read and not claimed: its lease is
in memory, and written a little later unless its ack has come (`engine.messaging.unwritten_leases`).

**Behind.** Not all due rows fit into the queue. The queue asks for more when half of what a
poll brought is used up.

**Withheld.** Another process dispatches the shard, or this one cannot tell: it is neither polled nor
claimed from, claims under way are released, and streams go on holding what they were sent.

**Paused.** Polls and all else go on, so that what is due is known at once when sending may go on.

**Failing.** A claim or poll that failed is tried again after 50 ms, doubling to 2 s. A shard
that fails without a break for the grace period loses the streams that cover it.

Claimed rows whose receiver has left go to another ready one, or are released: the claim is
undone, and they are due again at once.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import StreamLost, UnknownColumn
from streamfrom.engine.messaging.attached_receiver import AttachedReceiver, shares
from streamfrom.engine.messaging.events import (
    Acked,
    AckedUnnamed,
    Attached,
    Changed,
    Claim,
    Claimed,
    ClaimFailed,
    Deliver,
    Deposed,
    Detached,
    Due,
    Elected,
    End,
    Finish,
    LeasesWanted,
    LeasesWritten,
    Left,
    Look,
    Looked,
    LookFailed,
    Poll,
    Polled,
    PollFailed,
    ReceiverReady,
    Reconfigured,
    Release,
    Released,
    ReleaseFailed,
    ServedElsewhere,
    ShardDown,
    ShardUp,
    Shorten,
    Shortened,
    TableEnded,
    TellStanding,
    Tick,
    WaitOver,
    WriteLeases,
)
from streamfrom.engine.messaging.message import MessageKey
from streamfrom.engine.messaging.poll import FOREVER_NS
from streamfrom.engine.messaging.shard_queue import REMOVED, ShardQueue
from streamfrom.engine.messaging.shard_state import ClaimRun, Leaving, ShardState


if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from streamfrom.engine.messaging.events import Action, Event
    from streamfrom.engine.messaging.figures import Counters
    from streamfrom.engine.messaging.message import ClaimedRow
    from streamfrom.engine.messaging.message_table import MessageTable
    from streamfrom.engine.messaging.poll import PollRequest
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.sqlparse_ext.errors import StreamfromError


CLAIMS_IN_FLIGHT_MAX: Final = 2
CLAIM_ROWS_MAX: Final = 500
# A claim's rows are in memory until their sockets have taken them. How long a body is shows
# only when it is there, so the first claim is a small one.
CLAIM_BYTES_MAX: Final = 16 << 20
ROW_BYTES_ASSUMED: Final = 256 << 10
# What a poll asks for if streams that end want little: it costs a quarter of a millisecond.
POLL_KEYS_MIN: Final = 100
# Of the ready receivers these many, who have waited longest, are compared by their room: with
# ten thousand idle streams a lone message shall not look at all of them.
COMPARED_MAX: Final = 64
# What a receiver holds that stands still so long, full, while messages are due, is looked at so often:
# its acks may pass through another proxy, which tells nobody.
STANDING_NS: Final = 250 * 10**6


class TableState:
    """The scheduler of one message table, over all shards of its keyspace.

    grace_ns: how long a stream survives a shard that fails without a break; it may be set anew.
    """

    def __init__(self, table: MessageTable, shards: Iterable[ShardName], grace_ns: int) -> None:
        self._table = table
        self.grace_ns = grace_ns
        properties = table.properties
        self._shards = {
            name: ShardState(name, ShardQueue(properties.cache_size, newest=properties.newest))
            for name in shards
        }
        self._receivers: dict[int, AttachedReceiver] = {}
        # Receivers with room whose socket is free, the one that has waited longest first: that is the round-robin.
        self._ready: OrderedDict[int, AttachedReceiver] = OrderedDict()
        self._full: set[int] = set()  # receivers without room
        self._look_ns = 0  # not before is looked at what these hold
        # Those that end once nothing is due: they have rows, or wait for the first no longer.
        self._finishing: dict[int, AttachedReceiver] = {}
        self._row_bytes = 0  # of the longest rows seen lately
        self._numbers = 0
        self._is_freed = False  # a receiver became ready while this event was handled
        self._turn = 0  # which shard is served first
        self._actions: list[Action] = []

    # The whole interface: handle, wake_ns, and what can be seen of the state

    def handle(self, event: Event, now_ns: int) -> list[Action]:
        """Return what is to be done about *event*, in this order."""
        self._actions = []
        self._is_freed = False
        self._end_leases(now_ns)
        self._look_at_full(now_ns)
        match event:
            case Attached():
                self._attached(event, now_ns)
            case Detached():
                self._detached(event.receiver, event.unsent, now_ns)
            case Left():
                self._left(event.receiver, now_ns)
            case ReceiverReady():
                self._is_ready(event.receiver)
            case WaitOver():
                if event.receiver in self._receivers:
                    self._finishing[event.receiver] = self._receivers[event.receiver]
            case Due():
                self._due(event, now_ns)
            case Acked():
                shard = self._shards[event.shard]
                for ident in event.ids:
                    shard.queue.remove(ident)
                if shard.unwritten:
                    shard.unwritten.forget(event.ids)
                if shard.leases:
                    given_back = shard.leases.give_back_all(event.ids)
                    for (number, sent_ns), count in given_back.items():
                        shard.counters.sent_to_acked.observe(now_ns - sent_ns, count)
                        if (receiver := self._give_room(number, count)) is not None:
                            receiver.acted()
            case Changed():
                shard = self._shards[event.shard]
                shard.poll_wanted = True
                self._suspect(shard, event.ids, by_heartbeat=event.by_heartbeat)
                if event.ids is not None and not event.by_heartbeat:
                    shard.rescheduled(event.ids, now_ns)
            case AckedUnnamed():
                self._suspect(self._shards[event.shard], None)
            case LeasesWanted():
                self._shards[event.shard].unwritten.hurry(event.ids)
            case LeasesWritten():
                shard = self._shards[event.shard]
                self._release(shard, shard.wrote(event.result, now_ns), now_ns)
            case Looked():
                self._looked(event, now_ns)
            case LookFailed():
                self._shards[event.shard].leases.look_failed()
            case Claimed():
                self._claimed(event, now_ns)
            case ClaimFailed():
                self._claim_failed(event, now_ns)
            case Polled():
                interval_ns = self._table.properties.poller_interval_ns
                self._shards[event.shard].polled(event.result, now_ns, interval_ns)
            case PollFailed():
                shard = self._shards[event.shard]
                shard.poll_failed(event.reason, now_ns, self.grace_ns)
            case Released() | ReleaseFailed():
                self._released(event, now_ns)
            case Shortened():
                self._shards[event.shard].shortened(event.receiver, event.ids, now_ns)
            case Reconfigured():
                self._reconfigured(event, now_ns)
            case ShardDown():
                self._shards[event.shard].health.failed(event.reason, now_ns, self.grace_ns)
            case ShardUp():
                self._shard_up(self._shards[event.shard])
            case Elected():
                self._shards[event.shard].elected(now_ns)
            case Deposed():
                self._shards[event.shard].deposed(event.reason, now_ns, self.grace_ns)
            case ServedElsewhere():
                self._shards[event.shard].unserved.over()
            case TableEnded():
                self._end(list(self._receivers.values()), event.error)
                for shard in self._shards.values():
                    shard.unwritten.hurry(None)
            case Tick():
                pass
        self._settle_after(event, now_ns)
        if self._finishing:
            self._finish(now_ns)
        return self._actions

    def wake_ns(self) -> int | None:
        """Return when the next Tick is due, or None when only an event can change anything."""
        wake_ns = min(min(shard.wake_ns, shard.leases_ns) for shard in self._shards.values())
        if self._ready:
            # Without a ready receiver a due key waits for one, not for the clock.
            wake_ns = min(wake_ns, *(shard.wake_ready_ns for shard in self._shards.values()))
        if self._full:
            for shard in self._shards.values():
                end_ns, first_ns = shard.leases.first_end_ns(), shard.queue.first_ns()
                if end_ns is not None:
                    wake_ns = min(wake_ns, end_ns)
                    if first_ns is not None:
                        wake_ns = min(wake_ns, max(first_ns, self._look_ns))
        return wake_ns if wake_ns < FOREVER_NS else None

    @property
    def receivers(self) -> int:
        """Return how many streams are open."""
        return len(self._receivers)

    @property
    def attached(self) -> Mapping[int, AttachedReceiver]:
        """Return the open streams by their numbers."""
        return self._receivers

    @property
    def ready(self) -> Collection[int]:
        """Return the numbers of the receivers that can be given rows now, as in the round-robin."""
        return self._ready.keys()

    @property
    def table(self) -> MessageTable:
        """Return the table as it is scheduled now."""
        return self._table

    def counters(self, shard: ShardName) -> Counters:
        """Return what counts the events of a shard."""
        return self._shards[shard].counters

    @property
    def shards(self) -> Collection[ShardState]:
        """Return the shards."""
        return self._shards.values()

    def unwritten(self, shard: ShardName, ids: Collection[bytes] | None) -> Collection[bytes]:
        """Return those of *ids*, or of all messages, that may have been sent and whose rows do not show it."""
        state = self._shards[shard]
        sets = [state.unwritten.timers, *(run.keys for run in state.claims.values())]
        if ids is None:
            return [ident for each in sets for ident in each]
        return [ident for ident in ids if any(ident in each for each in sets)]

    @property
    def held(self) -> int:
        """Return how many messages are held by this process's clients, also by streams that are over."""
        return sum(shard.leases.of_clients for shard in self._shards.values())

    @property
    def waiting(self) -> int:
        """Return how many keys the caches hold."""
        return sum(len(shard.queue) for shard in self._shards.values())

    # Receivers come and go

    def _attached(self, event: Attached, now_ns: int) -> None:
        receiver = AttachedReceiver(
            event.receiver,
            event.shards,
            event.columns,
            event.prefetch,
            limit=0,
            opened_ns=now_ns,
            rows_left=event.rows_max,
        )
        self._limit(receiver)
        for shard in self._shards.values():
            if receiver.covers(shard.name):
                shard.join(now_ns)
        self._receivers[receiver.id] = receiver
        self._ready[receiver.id] = receiver

    def _detached(self, receiver: int, unsent: Sequence[ClaimedRow], now_ns: int) -> None:
        by_shard: dict[ShardName, list[ClaimedRow]] = {}
        for row in unsent:
            by_shard.setdefault(row.shard, []).append(row)
        for name, rows in by_shard.items():
            for row in rows:
                self._shards[name].leases.give_back_of(receiver, row.id)
            self._release(self._shards[name], rows, now_ns)
        self._ready.pop(receiver, None)
        self._full.discard(receiver)
        self._finishing.pop(receiver, None)
        gone = self._receivers.pop(receiver, None)
        for shard in self._shards.values():
            if gone is not None and gone.covers(shard.name):
                shard.leave()

    def _left(self, receiver: int, now_ns: int) -> None:
        release_after_ns = self._table.properties.release_after_ns
        if release_after_ns is None:
            return
        for shard in self._shards.values():
            if shard.is_dispatched and (held := shard.leases.ids_of(receiver)):
                shard.leaving[receiver] = Leaving(now_ns + release_after_ns)
                shard.unwritten.hurry(held)

    def _is_ready(self, receiver: int) -> None:
        found = self._receivers.get(receiver)
        # A socket may report twice; one that is reserved for a claim is not free.
        if found is not None and found.has_batch:
            found.has_batch = False
            self._open(found)

    def _limit(self, receiver: AttachedReceiver) -> None:
        """Set how many messages a receiver may hold."""
        own = receiver.prefetch
        receiver.limit = self._table.properties.prefetch if own is None else own

    def _end(self, receivers: Iterable[AttachedReceiver], error: StreamfromError) -> None:
        for receiver in receivers:
            self._actions.append(End(receiver.id, error))
            self._detached(receiver.id, (), 0)

    def _finish(self, now_ns: int) -> None:
        """End the streams that have all they asked for, or all there is.

        One that has rows does not wait for a shard that fails: its client can work on them.
        """
        for receiver in list(self._finishing.values()):
            if receiver.has_batch or receiver.is_reserved:
                continue
            if receiver.rows_left == 0 or all(
                self._table.properties.paused
                or shard.has_nothing(now_ns)
                or (receiver.sent > 0 and shard.is_failing)
                for shard in self._shards.values()
                if receiver.covers(shard.name)
            ):
                self._actions.append(Finish(receiver.id))
                self._detached(receiver.id, (), now_ns)

    # What is heard of messages

    def _due(self, event: Due, now_ns: int) -> None:
        shard = self._shards[event.shard]
        if shard.receivers and shard.is_dispatched:
            shard.counters.has_new(event.keys, now_ns)
            for key in event.keys:
                shard.queue.add(key, now_ns)
        if shard.leases or shard.claims:
            self._suspect(shard, tuple(key.id for key in event.keys))

    # Claims

    def _claim(self, shard: ShardState, now_ns: int) -> None:
        """Start claims while there are due keys, ready receivers and free slots."""
        shard.gathered_ns = FOREVER_NS
        if shard.claiming.retry_ns > now_ns or not self._may_send(shard):
            return
        batch = self._table.properties.batch_size
        while len(shard.claims) < CLAIMS_IN_FLIGHT_MAX:
            due = shard.queue.due(now_ns, at_most=self._claim_rows_max())
            receivers = self._choose(shard, due, now_ns)
            if not receivers:
                return
            counts = _shares(due, receivers, batch)
            receivers = receivers[: len(counts) - counts.count(0)]
            for receiver in receivers:
                receiver.is_reserved = True
                del self._ready[receiver.id]
            keys = shard.queue.take(sum(counts), now_ns)
            columns = receivers[0].columns
            number = self._number()
            shard.claims[number] = ClaimRun(
                keys={key.id: key for key in keys},
                receivers=[receiver.id for receiver in receivers],
                columns=columns,
            )
            ids = tuple(key.id for key in keys)
            uncounted = frozenset(filter(shard.unwritten.__contains__, ids))
            self._actions.append(Claim(number, shard.name, ids, columns, uncounted))

    def _may_send(self, shard: ShardState) -> bool:
        return shard.is_dispatched and not self._table.properties.paused

    def _claim_rows_max(self) -> int:
        """Return how many rows of the size seen lately one claim may take."""
        row_bytes = self._row_bytes or ROW_BYTES_ASSUMED
        return max(1, min(CLAIM_BYTES_MAX // row_bytes, CLAIM_ROWS_MAX))

    def _note_size(self, rows: Sequence[ClaimedRow]) -> None:
        if rows:
            # The largest of a claim, not the mean: one long body among short ones counts.
            # It is forgotten by halves, so that a single one does not slow the queue for ever.
            largest = max(len(row.payload) for row in rows)
            self._row_bytes = max(largest, self._row_bytes // 2, 1)

    def _choose(self, shard: ShardState, due: int, now_ns: int) -> list[AttachedReceiver]:
        """Return ready receivers of the same columns for one claim, who has most room first.

        Among equal ones the one that has waited longest goes first.
        """
        if not due:
            return []
        rows = min(due, self._table.properties.batch_size)
        chosen: list[AttachedReceiver] = []
        covering = (one for one in self._ready.values() if one.covers(shard.name))
        for receiver in islice(covering, COMPARED_MAX):
            gathered_ns = receiver.gathered_ns(rows, now_ns)
            if gathered_ns > now_ns:
                shard.gathered_ns = min(shard.gathered_ns, gathered_ns)
            else:
                chosen.append(receiver)
        chosen.sort(key=_by_room)
        columns = chosen[0].columns if chosen else ()
        return [receiver for receiver in chosen if receiver.columns == columns][:due]

    def _claimed(self, event: Claimed, now_ns: int) -> None:
        shard = self._shards[event.shard]
        run = shard.claims.pop(event.number)
        rows, passed_over = event.result.rows, event.result.passed_over
        self._note_size(rows)
        shard.claiming.over()
        shard.health.over()
        shard.polling.since_ns = None  # the shard works; a poll may be slow for other reasons
        won: list[ClaimedRow] = []
        unwritten: list[MessageKey] = []
        order = {ident: index for index, ident in enumerate(run.keys)}
        for row in sorted(rows, key=lambda row: order.get(row.id, len(order))):
            asked = run.keys.pop(row.id, None)
            if asked is None:
                # The database finds this id equal to one that was asked for (another case,
                # another spelling); only a poll can tell its priority.
                shard.poll_wanted = True
                won.append(row)
                continue
            timer = asked._replace(time_next_ns=row.due_next_ns)
            if row.is_written:
                shard.queue.unwritten.pop(row.id, None)
            meanwhile = shard.queue.requeue(row.id, timer, now_ns)
            if meanwhile is REMOVED:
                continue  # acked while the claim ran: never sent again
            if not row.is_written:
                unwritten.append(meanwhile if isinstance(meanwhile, MessageKey) else timer)
            if meanwhile is not None:
                # Rescheduled while the claim ran. Which of the two came first only the
                # database knows.
                shard.poll_wanted = True
            won.append(row)
        for ident, key in run.keys.items():
            shard.queue.not_won(key, passed_over.get(ident), now_ns)
        if unwritten:
            delay_ns = self._table.properties.lease_delay_ns
            shard.unwritten.sent(unwritten, now_ns + delay_ns)
        self._deliver(shard, run, won, now_ns)

    def _deliver(
        self, shard: ShardState, run: ClaimRun, won: list[ClaimedRow], now_ns: int
    ) -> None:
        """Share *won* out; what nobody can take, or may be sent no more, is released."""
        present = [self._receivers[i] for i in run.receivers if i in self._receivers]
        for receiver in present:
            receiver.is_reserved = False
        may_send = self._may_send(shard)
        start = self._share(shard, present, won, now_ns) if may_send else 0
        if may_send and start < len(won):
            others = (
                receiver
                for receiver in self._ready.values()
                if receiver.covers(shard.name) and receiver.columns == run.columns
            )
            chosen = list(islice(others, COMPARED_MAX))
            start += self._share(shard, chosen, won[start:], now_ns)
        for receiver in reversed(present):
            self._open(receiver, is_first=True)
        if run.is_suspect:
            shard.leases.suspect([row.id for row in won[:start]])
        self._release(shard, won[start:], now_ns)

    def _share(
        self,
        shard: ShardState,
        receivers: list[AttachedReceiver],
        rows: list[ClaimedRow],
        now_ns: int,
    ) -> int:
        """Give *rows* to *receivers*; return how many were given."""
        receivers.sort(key=_by_room)
        counts = _shares(len(rows), receivers, self._table.properties.batch_size)
        start = 0
        for receiver, count in zip(receivers, counts, strict=True):
            if count:
                self._give(shard, receiver, rows[start : start + count], now_ns)
                start += count
        return start

    def _give(
        self,
        shard: ShardState,
        receiver: AttachedReceiver,
        rows: Sequence[ClaimedRow],
        now_ns: int,
    ) -> None:
        receiver.has_batch = True
        self._ready.pop(receiver.id, None)
        shard.counters.has_sent(rows, now_ns)
        for lease in shard.leases.give(receiver.id, rows, now_ns):
            self._give_room(lease.receiver)  # sent again, past its lease
        receiver.took(len(rows), now_ns)
        if receiver.rows_left is not None:
            self._finishing[receiver.id] = receiver
        if receiver.room == 0:
            self._full.add(receiver.id)
        self._actions.append(Deliver(receiver.id, tuple(rows)))

    # Prefetch

    def _open(self, receiver: AttachedReceiver, *, is_first: bool = False) -> None:
        """Let a receiver be served, if it has room and nothing is on its way to it."""
        if receiver.room == 0:
            return
        self._full.discard(receiver.id)
        if receiver.has_batch or receiver.is_reserved:
            return
        if receiver.id not in self._ready:
            self._ready[receiver.id] = receiver
            if is_first:
                self._ready.move_to_end(receiver.id, last=False)
            self._is_freed = True
        elif receiver.gathering_since_ns is not None:
            self._is_freed = True

    def _give_room(self, number: int, count: int = 1) -> AttachedReceiver | None:
        """Count off *count* messages that a receiver holds no more; return it if it is still there."""
        receiver = self._receivers.get(number)
        if receiver is not None:
            receiver.held -= count
            self._open(receiver)
        return receiver

    def _end_leases(self, now_ns: int) -> None:
        ack_wait_ns = self._table.properties.ack_wait_ns
        for shard in self._shards.values():
            for lease in shard.leases.ended(now_ns):
                receiver = self._give_room(lease.receiver)
                if receiver is None or receiver.is_told or receiver.full_since_ns is None:
                    continue
                if now_ns - receiver.full_since_ns >= ack_wait_ns:
                    receiver.is_told = True
                    self._actions.append(
                        TellStanding(receiver.id, receiver.held + 1, receiver.full_since_ns)
                    )

    def _look_at_full(self, now_ns: int) -> None:
        """Look at what receivers hold that stand still while messages are due."""
        if not self._full or now_ns < self._look_ns:
            return
        firsts_ns = [shard.queue.first_ns() for shard in self._shards.values()]
        if not any(first_ns is not None and first_ns <= now_ns for first_ns in firsts_ns):
            return
        self._look_ns = now_ns + STANDING_NS
        for number in self._full:
            if now_ns - (self._receivers[number].full_since_ns or 0) >= STANDING_NS:
                for shard in self._shards.values():
                    # Later than known is longer: another proxy's heartbeats are not told either.
                    shard.leases.suspect(shard.leases.ids_of(number), by_heartbeat=True)
        for shard in self._shards.values():
            self._look_after_leases(shard, now_ns)

    def _suspect(
        self, shard: ShardState, ids: tuple[bytes, ...] | None, *, by_heartbeat: bool = False
    ) -> None:
        """Note that rows may have changed: those that streams hold are looked at."""
        shard.leases.suspect(ids, by_heartbeat=by_heartbeat)
        for run in shard.claims.values():
            run.is_suspect |= ids is None or any(ident in run.keys for ident in ids)

    def _looked(self, event: Looked, now_ns: int) -> None:
        shard = self._shards[event.shard]
        given_back, prolonged = shard.leases.looked(shard.seen(event.time_next_ns, now_ns))
        for lease in given_back:
            self._give_room(lease.receiver)
        for lease in (*given_back, *prolonged):
            if lease.receiver in self._receivers:
                self._receivers[lease.receiver].acted()

    def _claim_failed(self, event: ClaimFailed, now_ns: int) -> None:
        shard = self._shards[event.shard]
        run = shard.claims.pop(event.number)
        shard.claiming.failed(event.reason, now_ns, self.grace_ns)
        # It may have been committed before it was lost: then a poll tells when they are due.
        shard.poll_wanted = True
        for key in run.keys.values():
            shard.queue.requeue(key.id, key, now_ns)
        self._deliver(shard, run, [], now_ns)

    # Releases

    def _release(self, shard: ShardState, unsent: Sequence[ClaimedRow], now_ns: int) -> None:
        """Undo the sending of rows; those that were claimed are in flight until that is done."""
        rows = shard.put_back_unwritten(unsent, now_ns)
        shard.counters.released += len(unsent)
        if not rows:
            return
        number = self._number()
        shard.releases[number] = {row.id: shard.queue.put_in_flight(row.id) for row in rows}
        self._actions.append(Release(number, shard.name, tuple(rows)))

    def _released(self, event: Released | ReleaseFailed, now_ns: int) -> None:
        shard = self._shards[event.shard]
        keys = shard.releases.pop(event.number)
        for row in event.rows:
            key = keys[row.id]
            if key is not None and isinstance(event, Released):
                key = key._replace(time_next_ns=row.time_next_ns)
            if key is None:
                # It had left the queue: acked, or due too late to be kept.
                shard.poll_wanted = True
            shard.queue.requeue(row.id, key, now_ns)

    # Settings and health

    def _reconfigured(self, event: Reconfigured, now_ns: int) -> None:
        self._table = event.table
        properties = event.table.properties
        known = set(event.table.columns)
        for receiver in list(self._receivers.values()):
            missing = [column for column in receiver.columns if column not in known]
            if missing:
                self._end([receiver], UnknownColumn(missing[0]))
                continue
            self._limit(receiver)
            if receiver.room:
                self._open(receiver)
            else:
                self._ready.pop(receiver.id, None)
                self._full.add(receiver.id)
        for shard in self._shards.values():
            shard.queue.configure(
                properties.cache_size, newest=properties.newest, now_ns=now_ns
            )
            shard.poll_wanted = True

    def _shard_up(self, shard: ShardState) -> None:
        for trouble in (shard.claiming, shard.polling, shard.health):
            trouble.over()
        shard.poll_wanted = True

    # After every event

    def _settle_after(self, event: Event, now_ns: int) -> None:
        """Bring to rest the shards that *event* can have concerned."""
        match event:
            case ReceiverReady() | WaitOver():
                self._serve(now_ns)
            case Tick():
                for shard in self._shards.values():
                    wake_ns = min(shard.wake_ns, shard.wake_ready_ns, shard.leases_ns)
                    if wake_ns <= now_ns:
                        self._settle(shard, now_ns)
                if self._is_freed:
                    self._serve(now_ns)
            case Attached() | Detached() | Left() | Reconfigured() | TableEnded():
                for shard in self._shards.values():
                    self._settle(shard, now_ns)
            case _:
                self._settle(self._shards[event.shard], now_ns)
                if self._is_freed:
                    self._serve(now_ns)

    def _serve(self, now_ns: int) -> None:
        """Let the shards that have due keys use the receivers that are ready, in turn."""
        shards = list(self._shards.values())
        self._turn = (self._turn + 1) % len(shards)
        for shard in shards[self._turn :] + shards[: self._turn]:
            if not self._ready:
                return
            first_ns = shard.queue.first_ns()
            if first_ns is not None and first_ns <= now_ns:
                self._settle(shard, now_ns)

    def _settle(self, shard: ShardState, now_ns: int) -> None:
        """Claim what can be claimed, poll what must be polled, and note when to look again."""
        self._look_after_leases(shard, now_ns)
        if not shard.receivers:
            shard.rest()
            return
        lost_ns = shard.lost_ns(self.grace_ns)
        if lost_ns <= now_ns:
            self._lose(shard)
            return
        if not shard.is_dispatched:
            shard.rest()
            shard.wake_ns = lost_ns
            return
        self._claim(shard, now_ns)
        request = shard.start_poll(now_ns)
        if request is not None:
            self._actions.append(Poll(shard.name, self._bounded(shard, request)))
        shard.settled(now_ns, lost_ns)

    def _bounded(self, shard: ShardState, request: PollRequest) -> PollRequest:
        """Return *request* for no more than the streams can use, where all of them end."""
        wanted = 0
        for receiver in self._receivers.values():
            if receiver.covers(shard.name):
                if receiver.rows_left is None:
                    return request
                wanted += receiver.rows_left
        # Twice as much, so that what they take does not leave so little that a poll is due again.
        return replace(request, limit=min(request.limit, 2 * wanted + POLL_KEYS_MIN))

    def _look_after_leases(self, shard: ShardState, now_ns: int) -> None:
        """Look at rows that may have changed, let those of who has left be due sooner, and write leases."""
        if ids := shard.next_look():
            self._actions.append(Look(shard.name, ids))
        if left := shard.next_left(now_ns):
            self._actions.append(Shorten(shard.name, *left))
        if leases := shard.next_write(now_ns):
            self._actions.append(WriteLeases(shard.name, leases))

    def _lose(self, shard: ShardState) -> None:
        cause = next(t.cause for t in shard.troubles() if t.since_ns is not None)
        grace_s = self.grace_ns / 10**9
        error = StreamLost(self._table.keyspace, shard.name, grace_s, cause)
        covering = [r for r in self._receivers.values() if r.covers(shard.name)]
        self._end(covering, error)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers


def _by_room(receiver: AttachedReceiver) -> int:
    return -receiver.room


def _shares(rows: int, receivers: Sequence[AttachedReceiver], batch: int) -> list[int]:
    return shares(
        rows,
        [receiver.room for receiver in receivers],
        [receiver.at_most(batch) for receiver in receivers],
    )
