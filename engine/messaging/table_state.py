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

**Behind.** Not all due rows fit into the queue. The queue asks for more when half of what a
poll brought is used up.

**Failing.** A claim or poll that failed is tried again after 50 ms, doubling to 2 s. A shard
that fails without a break for the grace period loses the streams that cover it.

Claimed rows whose receiver has left go to another ready one, or are released: the claim is
undone, and they are due again at once.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import StreamLost, UnknownColumn
from streamfrom.engine.messaging.events import (
    Acked,
    Attached,
    Changed,
    Claim,
    Claimed,
    ClaimFailed,
    Deliver,
    Detached,
    Due,
    End,
    Poll,
    Polled,
    PollFailed,
    ReceiverReady,
    Reconfigured,
    Release,
    Released,
    ReleaseFailed,
    ShardDown,
    ShardUp,
    TableEnded,
    Tick,
)
from streamfrom.engine.messaging.poll import FOREVER_NS
from streamfrom.engine.messaging.shard_queue import REMOVED, ShardQueue
from streamfrom.engine.messaging.shard_state import ClaimRun, ShardState


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamfrom.engine.messaging.events import Action, Event
    from streamfrom.engine.messaging.message import ClaimedRow, MessageKey
    from streamfrom.engine.messaging.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.sqlparse_ext.errors import StreamfromError


CLAIMS_IN_FLIGHT_MAX: Final = 2
CLAIM_ROWS_MAX: Final = 500
# A claim's rows are in memory until their sockets have taken them. How long a body is shows
# only when it is there, so the first claim is a small one.
CLAIM_BYTES_MAX: Final = 16 << 20
ROW_BYTES_ASSUMED: Final = 256 << 10


@dataclass(slots=True)
class _AttachedReceiver:
    id: int
    shards: frozenset[ShardName] | None
    columns: tuple[str, ...]
    has_batch: bool = False  # delivered, and its socket has not taken it yet

    def covers(self, shard: ShardName) -> bool:
        return self.shards is None or shard in self.shards


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
        self._receivers: dict[int, _AttachedReceiver] = {}
        # ReceiverReady receivers, the one that has waited longest first: that is the round-robin.
        self._ready: OrderedDict[int, _AttachedReceiver] = OrderedDict()
        self._row_bytes = 0  # of the longest rows seen lately
        self._numbers = 0
        self._is_freed = False  # a receiver became ready while this event was handled
        self._turn = 0  # which shard is served first
        self._actions: list[Action] = []

    # The whole interface: handle, wake_ns, and two figures

    def handle(self, event: Event, now_ns: int) -> list[Action]:
        """Return what is to be done about *event*, in this order."""
        self._actions = []
        self._is_freed = False
        match event:
            case Attached():
                self._attached(event, now_ns)
            case Detached():
                self._detached(event.receiver, event.unsent)
            case ReceiverReady():
                self._is_ready(event.receiver)
            case Due():
                self._due(event, now_ns)
            case Acked():
                for ident in event.ids:
                    self._shards[event.shard].queue.remove(ident)
            case Changed():
                self._shards[event.shard].poll_wanted = True
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
            case Reconfigured():
                self._reconfigured(event, now_ns)
            case ShardDown():
                self._shards[event.shard].health.failed(event.reason, now_ns, self.grace_ns)
            case ShardUp():
                self._shard_up(self._shards[event.shard])
            case TableEnded():
                self._end(list(self._receivers.values()), event.error)
            case Tick():
                pass
        self._settle_after(event, now_ns)
        return self._actions

    def wake_ns(self) -> int | None:
        """Return when the next Tick is due, or None when only an event can change anything."""
        wake_ns = min(shard.wake_ns for shard in self._shards.values())
        if self._ready:
            # Without a ready receiver a due key waits for one, not for the clock.
            wake_ns = min(wake_ns, *(shard.wake_ready_ns for shard in self._shards.values()))
        return wake_ns if wake_ns < FOREVER_NS else None

    @property
    def receivers(self) -> int:
        """Return how many streams are open."""
        return len(self._receivers)

    @property
    def waiting(self) -> int:
        """Return how many keys the caches hold."""
        return sum(len(shard.queue) for shard in self._shards.values())

    # Receivers come and go

    def _attached(self, event: Attached, now_ns: int) -> None:
        receiver = _AttachedReceiver(event.receiver, event.shards, event.columns)
        for shard in self._shards.values():
            if receiver.covers(shard.name):
                shard.join(now_ns)
        self._receivers[receiver.id] = receiver
        self._ready[receiver.id] = receiver

    def _detached(self, receiver: int, unsent: Sequence[ClaimedRow]) -> None:
        by_shard: dict[ShardName, list[ClaimedRow]] = {}
        for row in unsent:
            by_shard.setdefault(row.shard, []).append(row)
        for name, rows in by_shard.items():
            queue = self._shards[name].queue
            self._release(
                self._shards[name], {row.id: queue.put_in_flight(row.id) for row in rows}, rows
            )
        self._ready.pop(receiver, None)
        gone = self._receivers.pop(receiver, None)
        for shard in self._shards.values():
            if gone is not None and gone.covers(shard.name):
                shard.leave()

    def _is_ready(self, receiver: int) -> None:
        found = self._receivers.get(receiver)
        # A socket may report twice; one that is reserved for a claim is not free.
        if found is not None and found.has_batch:
            found.has_batch = False
            self._ready[receiver] = found
            self._is_freed = True

    def _end(self, receivers: Iterable[_AttachedReceiver], error: StreamfromError) -> None:
        for receiver in receivers:
            self._actions.append(End(receiver.id, error))
            self._detached(receiver.id, ())

    # What is heard of messages

    def _due(self, event: Due, now_ns: int) -> None:
        shard = self._shards[event.shard]
        if shard.receivers:
            for key in event.keys:
                shard.queue.add(key, now_ns)

    # Claims

    def _claim(self, shard: ShardState, now_ns: int) -> None:
        """Start claims while there are due keys, ready receivers and free slots."""
        if shard.claiming.retry_ns > now_ns:
            return
        while len(shard.claims) < CLAIMS_IN_FLIGHT_MAX:
            due = shard.queue.due(now_ns, at_most=self._claim_rows_max())
            receivers = self._choose(shard.name, due)
            if not receivers:
                return
            batch = self._table.properties.batch_size
            # Rounded up, here and below: 7 rows for 3 receivers are 3, 3 and 1, not 2 each and 1 left.
            rows_each = min(-(-due // len(receivers)), batch)
            rows = min(due, rows_each * len(receivers))
            receivers = receivers[: -(-rows // rows_each)]
            for receiver in receivers:
                del self._ready[receiver.id]
            keys = shard.queue.take(rows, now_ns)
            columns = receivers[0].columns
            number = self._number()
            shard.claims[number] = ClaimRun(
                keys={key.id: key for key in keys},
                receivers=[receiver.id for receiver in receivers],
                columns=columns,
                rows_each=batch,
            )
            ids = tuple(key.id for key in keys)
            self._actions.append(Claim(number, shard.name, ids, columns))

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

    def _choose(self, shard: ShardName, at_most: int) -> list[_AttachedReceiver]:
        """Return ready receivers for one claim: the one that waited longest, and others of its columns."""
        chosen: list[_AttachedReceiver] = []
        for receiver in self._ready.values():
            if len(chosen) == at_most:
                break
            if receiver.covers(shard) and (not chosen or receiver.columns == chosen[0].columns):
                chosen.append(receiver)
        return chosen

    def _claimed(self, event: Claimed, now_ns: int) -> None:
        shard = self._shards[event.shard]
        run = shard.claims.pop(event.number)
        rows, passed_over = event.result.rows, event.result.passed_over
        self._note_size(rows)
        shard.claiming.over()
        shard.health.over()
        shard.polling.since_ns = None  # the shard works; a poll may be slow for other reasons
        won: list[ClaimedRow] = []
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
            meanwhile = shard.queue.requeue(row.id, timer, now_ns)
            if meanwhile is REMOVED:
                continue  # acked while the claim ran: never sent again
            if meanwhile is not None:
                # Rescheduled while the claim ran. Which of the two came first only the
                # database knows.
                shard.poll_wanted = True
            won.append(row)
        for ident, key in run.keys.items():
            shard.queue.not_won(key, passed_over.get(ident), now_ns)
        self._deliver(shard, run, won)

    def _deliver(self, shard: ShardState, run: ClaimRun, won: list[ClaimedRow]) -> None:
        """Share *won* out evenly; what nobody can take is released."""
        present = [ident for ident in run.receivers if ident in self._receivers]
        # Rounded up as in `_claim`: the last receivers may get fewer, none gets a row more than its batch.
        each = min(-(-len(won) // len(present)), run.rows_each) if present else 0
        start = 0
        idle: list[int] = []
        for ident in present:
            rows = won[start : start + each]
            start += len(rows)
            if rows:
                self._give(self._receivers[ident], rows)
            else:
                idle.append(ident)
        for ident in reversed(idle):
            self._ready[ident] = self._receivers[ident]
            self._ready.move_to_end(ident, last=False)
            self._is_freed = True
        for receiver in list(self._ready.values()):
            if start >= len(won):
                return
            if receiver.covers(shard.name) and receiver.columns == run.columns:
                del self._ready[receiver.id]
                rows = won[start : start + run.rows_each]
                start += len(rows)
                self._give(receiver, rows)
        unsent = won[start:]
        self._release(
            shard, {row.id: shard.queue.put_in_flight(row.id) for row in unsent}, unsent
        )

    def _give(self, receiver: _AttachedReceiver, rows: Sequence[ClaimedRow]) -> None:
        receiver.has_batch = True
        self._actions.append(Deliver(receiver.id, tuple(rows)))

    def _claim_failed(self, event: ClaimFailed, now_ns: int) -> None:
        shard = self._shards[event.shard]
        run = shard.claims.pop(event.number)
        shard.claiming.failed(event.reason, now_ns, self.grace_ns)
        # It may have been committed before it was lost: then a poll tells when they are due.
        shard.poll_wanted = True
        for key in run.keys.values():
            shard.queue.requeue(key.id, key, now_ns)
        self._deliver(shard, run, [])

    # Releases

    def _release(
        self,
        shard: ShardState,
        keys: dict[bytes, MessageKey | None],
        rows: Sequence[ClaimedRow],
    ) -> None:
        """Undo the claim of *rows*, which are in flight until that is done."""
        if not rows:
            return
        number = self._number()
        shard.releases[number] = keys
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
        for shard in self._shards.values():
            shard.queue.configure(
                properties.cache_size, newest=properties.newest, now_ns=now_ns
            )
            shard.poll_wanted = True

    def _shard_up(self, shard: ShardState) -> None:
        for trouble in shard.troubles():
            trouble.over()
        shard.poll_wanted = True

    # After every event

    def _settle_after(self, event: Event, now_ns: int) -> None:
        """Bring to rest the shards that *event* can have concerned."""
        match event:
            case ReceiverReady():
                self._serve(now_ns)
            case Tick():
                for shard in self._shards.values():
                    if min(shard.wake_ns, shard.wake_ready_ns) <= now_ns:
                        self._settle(shard, now_ns)
            case Attached() | Detached() | Reconfigured() | TableEnded():
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
        if not shard.receivers:
            shard.rest()
            return
        lost_ns = shard.lost_ns(self.grace_ns)
        if lost_ns <= now_ns:
            self._lose(shard)
            return
        self._claim(shard, now_ns)
        request = shard.start_poll(now_ns)
        if request is not None:
            self._actions.append(Poll(shard.name, request))
        shard.settled(now_ns, lost_ns)

    def _lose(self, shard: ShardState) -> None:
        cause = next(t.cause for t in shard.troubles() if t.since_ns is not None)
        grace_s = self.grace_ns / 10**9
        error = StreamLost(self._table.keyspace, shard.name, grace_s, cause)
        covering = [r for r in self._receivers.values() if r.covers(shard.name)]
        self._end(covering, error)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers
