"""One shard of one message table: its queue, what is under way on it, and how it fares.

A part of `engine.messaging.dispatch.table_state`, which decides what the receivers get; this module decides when to look next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.acks.early_acks import EarlyAcks
from streamfrom.engine.messaging.dispatch.poll_times import PollTimes
from streamfrom.engine.messaging.gates.set_aside import SetAside
from streamfrom.engine.messaging.gates.shard_gates import ShardGates, Trouble
from streamfrom.engine.messaging.leases.leases import Lease, Leases
from streamfrom.engine.messaging.leases.leaving_receivers import LeavingReceivers
from streamfrom.engine.messaging.leases.unwritten_leases import UnwrittenLeases
from streamfrom.engine.messaging.order.group_watch import GroupWatch
from streamfrom.engine.messaging.streams.lost_messages import LostMessages
from streamfrom.engine.messaging.table.counters import Counters
from streamfrom.engine.messaging.table.message import FOREVER_NS


if TYPE_CHECKING:
    from streamfrom.engine.messaging.order.key_order import KeyOrder
    from streamfrom.engine.messaging.queue.poll import PollResult
    from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
    from streamfrom.engine.messaging.streams.stream_order import Batch, Streams
    from streamfrom.engine.messaging.table.message import (
        ClaimedRow,
        LateWrites,
        LeaseWrite,
        MessageKey,
    )
    from streamfrom.engine.sharding.keyspace import ShardName


# A client that takes messages one by one opens a stream for each; without its keys each began with a poll, which took
# 0.55 of the 1.3 ms of a STREAM … LIMIT 1.
LINGER_NS: Final = 10**9


@dataclass(slots=True)
class ClaimRun:
    """A claim under way: what it asked for, and the receivers reserved for it.

    begun_ns: when it was asked for. Leases run from the claim on, and a consumer has its wait from its delivery on.
    choice: the keys that its receivers named; None for all.
    is_suspect: rows were changed meanwhile, perhaps after the claim and perhaps those it won.
    gone: messages that were acked or deleted meanwhile, and that it may win without having been asked for.
    shown: messages whose leases were written meanwhile, perhaps after it has read their rows.
    """

    keys: dict[bytes, MessageKey]
    receivers: list[int]
    columns: tuple[str, ...]
    begun_ns: int
    choice: frozenset[bytes] | None = None
    is_suspect: bool = False
    gone: set[bytes] = field(default_factory=set)
    shown: dict[bytes, MessageKey] = field(default_factory=dict)


class ShardState:
    """Everything a table's scheduler keeps of one shard.

    is_dispatched: this process dispatches the shard.
    partitions_overdue: what the last purge found.
    receivers: how many streams cover the shard.
    lingers_until_ns: how long the keys are kept, and news is heard, after the last stream has left; 0 with none kept.
    unwritten: those of the leases that are in memory alone.
    early_acks: the acks that are in memory alone.
    put_back: rows that were sent to no receiver, and whose leases are being written at this moment.
    releases: keys that are being released, by the number of the release.
    gathered_ns: when receivers that let room gather take what they have room for.
    order: which messages wait for others of their key; None where none does.
    held_back_ns: when more may be sent, if nothing happens before, where a limit holds back what is due.
    wake_ns: when the shard has work to do by itself.
    wake_ready_ns: when the shard has work to do if a receiver is ready.
    last_claim: the number of its last claim, so that shards take turns.
    """

    def __init__(
        self, name: ShardName, queue: ShardQueue, streams: Streams | None = None
    ) -> None:
        self.name = name
        self.queue = queue
        self.leases = Leases(streams, name, queue.unwritten)
        queue.renewed = self.leases.shown_ns
        queue.renewed_until = self.leases.longer_than_shown
        self.unwritten = UnwrittenLeases(queue.unwritten, self.leases.shown_ns)
        self.leaving = LeavingReceivers(self.leases, self.unwritten, queue)
        self.early_acks = EarlyAcks(queue.acked)
        self.set_aside = SetAside(queue.set_aside)
        self.polls = PollTimes(queue)
        self.counters = Counters()
        self.groups = GroupWatch()
        self.lost = LostMessages()
        self.gates = ShardGates(self._load)
        self.order: KeyOrder | None = None
        self.is_dispatched = True
        self.partitions_overdue = self.receivers = self.lingers_until_ns = self.last_claim = 0
        self.claims: dict[int, ClaimRun] = {}
        self.releases: dict[int, dict[bytes, MessageKey | None]] = {}
        self.claiming, self.health, self.unserved = Trouble(), Trouble(), Trouble()
        self.wake_ns = self.wake_ready_ns = self.gathered_ns = self.held_back_ns = FOREVER_NS
        self.put_back: list[ClaimedRow] = []

    def polled(self, result: PollResult, now_ns: int, interval_ns: int) -> None:
        """Take in what a poll found."""
        self.health.over()
        if self.set_aside.timers:
            keys = chain.from_iterable((*tier.fresh, *tier.timed) for tier in result.tiers)
            spans = chain.from_iterable(read.keys for read in result.spans or ())
            self.set_aside.polled(chain(keys, spans, result.news), now_ns)
        self.polls.finished(result, now_ns, interval_ns)

    def has_nothing(self, now_ns: int, keys: frozenset[bytes] | None = None) -> bool:
        """Return whether no message is due, of *keys* if given, as far as can be known: no poll is needed to know."""
        if not self.is_dispatched:
            # Who dispatches it says for itself what is due.
            return self.unserved.since_ns is None
        if self.queue.news or self.queue.due(now_ns, at_most=1, keys=keys):
            return False
        if keys:
            # Polls for what was left out of other keys may go on without end.
            left_out_ns = self.queue.next_poll_ns(keys)
            is_left_out = left_out_ns is not None and left_out_ns <= now_ns
            return not (is_left_out or self.polls.is_asking(now_ns))
        return self.polls.is_resting(now_ns)

    # Limits

    def hold_back(self, now_ns: int) -> bool:
        """Note until when gates hold back what is due; return whether to look at what is in flight."""
        opens_ns = self.gates.opens_ns(now_ns)
        if opens_ns is not None:
            self.held_back_ns = opens_ns
        limit = self.gates.in_flight
        if limit is None or not self.gates.is_full():
            return False
        is_to_look = limit.is_to_look(now_ns)
        if is_to_look:
            self.leases.suspect_all_but(self.leaving)
        end_ns = self.leases.first_look_ns()
        self.held_back_ns = min(ns for ns in (limit.look_ns, end_ns) if ns is not None)
        return is_to_look

    def _load(self) -> tuple[int, int]:
        return len(self.leases), sum(len(run.keys) for run in self.claims.values())

    # Order

    def freed(self, idents: Iterable[bytes] | None, now_ns: int) -> None:
        """Let messages go that waited for *idents*, or for any others of their key."""
        if self.order is None:
            return
        if idents is None:
            self.order.free_all(now_ns)
        elif self.order.freed(idents, now_ns):
            self.polls.wanted = True

    @property
    def hears_news(self) -> bool:
        """Return whether keys that become due are kept: messages go to streams from here, or may soon."""
        return self.is_dispatched and bool(self.receivers or self.lingers_until_ns)

    @property
    def known(self) -> int:
        """Return how many messages wait or are held, as far as is known: so many rows changes lead to."""
        return len(self.queue) + self.queue.in_flight + len(self.leases)

    # Receivers

    def join(self, now_ns: int) -> None:
        """Count a receiver; the first receiver causes a poll, unless something is known to be due."""
        self.receivers += 1
        self.gates.first_stream(now_ns)
        if self.receivers == 1:
            if not self.queue.due(now_ns, at_most=1):
                self.polls.begin(now_ns)
            self.lingers_until_ns = 0
            # A stream that opens while the shard is down has its whole grace before it.
            for trouble in (self.health, self.unserved):
                if trouble.since_ns is not None:
                    trouble.since_ns = now_ns

    def leave(self, now_ns: int) -> None:
        """Count a receiver off; some time after the last one the queue is emptied, at once where the shard fails."""
        self.receivers -= 1
        if self.receivers == 0:
            if self.is_failing:
                self.rest()
            else:
                self.lingers_until_ns = now_ns + LINGER_NS

    def linger(self) -> None:
        """Do nothing but hear news, until it is time to rest."""
        self.wake_ns, self.wake_ready_ns = self.lingers_until_ns, FOREVER_NS
        self.gathered_ns = self.held_back_ns = FOREVER_NS

    def rest(self) -> None:
        """Forget the keys, and do nothing; what streams were sent they go on holding."""
        self.lingers_until_ns = 0
        if self.order is not None:
            self.order.clear()
        for ident in self.lost.clear():
            self.queue.requeue(ident, None, 0)
        self.queue.clear()
        self.groups.clear()
        self.counters.forget_new()
        self.polls.rest()
        self.claiming.over()
        self.wake_ns = self.wake_ready_ns = self.gathered_ns = self.held_back_ns = FOREVER_NS

    def clock_set_back(self, by_ns: int, now_ns: int) -> None:
        """Begin again, as after an election: what was to happen at a moment of the clock before would come late."""
        self.rest()
        self.set_aside.clock_set_back(by_ns)
        self.unwritten.clock_set_back(by_ns)
        self._ends_moved(self.leases.clock_set_back(by_ns), now_ns)
        self.leaving.clock_set_back(by_ns)
        self.polls.clock_set_back(now_ns)
        self.wake_ns = now_ns
        self.gates.clock_set_back(now_ns)
        self.leaving.retry(now_ns)
        self.unwritten.hurry(None)
        self.early_acks.hurry()

    # Leases and acks that are in memory alone

    @property
    def writes_ns(self) -> int:
        """Return when the next leases or acks are to be written, brought up to date, or made shorter."""
        # Acks are written whichever member dispatches the shard by now: they are true.
        write_ns = self.early_acks.next_ns()
        if self.is_dispatched:
            write_ns = min(write_ns, self.unwritten.next_ns())
            write_ns = min(write_ns, self.leaving.next_ns())
            if (look_ns := self.leases.first_look_ns()) is not None:
                write_ns = min(write_ns, look_ns)
        return write_ns

    def takes_acks(self, idents: Iterable[bytes], now_ns: int) -> tuple[bytes, ...] | None:
        """Return those of *idents* that an early ack acknowledges, None if it cannot be answered early.

        That is so where the message is in flight as far as is known here, or was acked early before.
        """
        if not (self.is_dispatched and self.early_acks.takes_more):
            return None
        found: dict[bytes, None] = {}
        for ident in idents:
            if ident in self.early_acks:
                continue
            if self.queue.is_in_flight(ident) or not self.leases.is_sure(ident, now_ns):
                return None
            found[ident] = None
        return tuple(found)

    @property
    def is_releasing(self) -> bool:
        """Return whether rows are still to show what was sent from here, or what clients that leave held."""
        return self.is_dispatched and (bool(self.leaving) or self._are_written(self.unwritten))

    @property
    def has_acks_to_write(self) -> bool:
        """Return whether there are acks that rows are to show, and that the server writes as far as is known."""
        return self._are_written(self.early_acks.acked_ns)

    def _are_written(self, idents: Iterable[bytes]) -> bool:
        return any(ident not in self.set_aside.rows for ident in idents)

    def unshown(self, ids: Collection[bytes] | None) -> Collection[bytes]:
        """Return those of *ids*, or of all messages, that may have been sent or were acked, and whose rows do not show it."""
        sets: list[Collection[bytes]] = [
            self.unwritten,
            self.leases.lagging_ids(ids),
            self.early_acks.acked_ns,
            *(run.keys for run in self.claims.values()),
        ]
        if ids is None:
            return [ident for each in sets for ident in each]
        return [ident for ident in ids if any(ident in each for each in sets)]

    def show_leases(self, idents: Iterable[bytes] | None, now_ns: int) -> None:
        """Let rows show at once what they do not show of leases, of *idents* or of all messages."""
        self.renew(self.leases.lagging(idents), now_ns)
        self.unwritten.hurry(idents)

    def renew(self, batches: Iterable[Batch], now_ns: int) -> None:
        """Bring leases up to date, and let their rows show them soon."""
        for batch in batches:
            self._ends_moved(self.leases.renew(batch), now_ns)

    def _ends_moved(self, moved: Iterable[tuple[bytes, int, int]], now_ns: int) -> None:
        """Let messages be due, and rows show it soon, when their leases end by now: each with its end before and its new one."""
        late: list[bytes] = []
        for ident, before_ns, until_ns in moved:
            self.queue.renew(ident, until_ns, now_ns)
            if ident not in self.unwritten.timers:
                self.leases.shown_ns.setdefault(ident, before_ns)
                late.append(ident)
        if late:
            self.unwritten.renewed(late, now_ns)

    def wrote(
        self, result: LateWrites | None, now_ns: int, again_ns: Mapping[bytes, int]
    ) -> list[ClaimedRow]:
        """Take in what a writing of leases found; return rows that it concerned and that were sent to no receiver.

        again_ns: when the rows are tried again that the server does not write.
        """
        again, done = self.unwritten.written(result, now_ns, again_ns)
        if result is not None:
            self.set_aside.over([ident for ident in done if ident in self.set_aside.rows])
            self.leases.not_written(again)
            self.leases.suspect(result.rescheduled, keeps_leases=True)
            self.polls.wanted |= bool(result.rescheduled)
        changed = () if result is None else result.rescheduled
        late = self.leases.written([ident for ident in done if ident not in changed])
        shown = self.rows_show(done)
        for ident in done:
            self.queue.shown(ident, shown.get(ident))
        if late:
            self.unwritten.renewed(late, now_ns)
        if done:  # where none was written, to try at once would be to try without a pause
            self.leaving.retry(now_ns)
        put_back, self.put_back = self.put_back, []
        return put_back

    def rows_show(self, idents: Iterable[bytes]) -> dict[bytes, MessageKey]:
        """Note that rows show by now that messages were sent; return the keys of those whose rows did not."""
        timers = self.unwritten.timers
        shown = {ident: timers.pop(ident) for ident in idents if ident in timers}
        for run in self.claims.values():
            run.shown |= shown
        return shown

    def next_write(self, now_ns: int) -> tuple[LeaseWrite, ...]:
        """Return leases that are to be written now.

        A poll reads the rows of unwritten ones past those it asks for: they are half as many at most.
        """
        if not (self.unwritten and self.is_dispatched):
            return ()
        # Leases that the server refuses stay unwritten, however often they are tried.
        at_most = max(self.queue.limit // 2, 1) + len(self.set_aside)
        idents = self.unwritten.next_write(now_ns, at_most)
        self.renew(self.leases.lagging(idents), now_ns)
        timers = self.unwritten.timers
        return tuple(self.leases.next_write(ident, timers.get(ident)) for ident in idents)

    def rescheduled(self, idents: Iterable[bytes], now_ns: int) -> None:
        """Claim messages again that a client has rescheduled, whatever their rows show.

        Their leases were to be written first, which is impossible while the one who reschedules holds the row.
        """
        for ident in idents:
            if (timer := self.unwritten.timers.get(ident)) is not None:
                self.queue.add(timer._replace(time_next_ns=0), now_ns)

    def looked(
        self, time_next_ns: Mapping[bytes, int], now_ns: int
    ) -> tuple[list[Lease], list[Lease]]:
        """Take in what a look found; return which leases are over, and which are longer by heartbeats."""
        given_back, prolonged = self.leases.looked(time_next_ns, now_ns)
        for lease in prolonged:
            self.queue.renew(lease.id, lease.until_ns, now_ns)
        if late := [lease.id for lease in prolonged if lease.id in self.leases.shown_ns]:
            self.unwritten.renewed(late, now_ns)
        self.freed([lease.id for lease in given_back], now_ns)
        return given_back, prolonged

    def put_back_unwritten(self, rows: Iterable[ClaimedRow], now_ns: int) -> list[ClaimedRow]:
        """Let rows be due again that were sent to no receiver; return those in which something was written."""
        written = []
        for row in rows:
            if self.unwritten.is_being_written(row.id):
                self.put_back.append(row)
                continue
            key = None if row.is_written else self.unwritten.timers.pop(row.id, None)
            if key is None or key.time_next_ns != row.due_next_ns:
                written.append(row)
            else:
                self.queue.add(key._replace(time_next_ns=row.time_next_ns), now_ns)
        return written

    # Who dispatches

    def elected(self, now_ns: int) -> None:
        """Dispatch from now on, which begins with a poll."""
        self.is_dispatched = True
        self.gates.begin(now_ns)
        if self.order is not None:
            self.order.clear()
        self.unserved.over()
        self.leaving.retry(now_ns)
        self.polls.next_ns = now_ns

    def deposed(self, reason: str | None, now_ns: int, grace_ns: int) -> None:
        """Leave the shard to another process; *reason*: why it is not known to serve it yet."""
        if reason is None:
            self.unserved.over()
        else:
            self.unserved.failed(reason, now_ns, grace_ns)
        self.is_dispatched = False
        self.rest()
        self.leases.forget_found()
        # Leases that are not written, and those of who has left, are kept: only the dispatcher writes. Another one sends again
        # what no row shows; this one, if it is the next, does not. Of rows that the other has written none is written then.
        # Acks that were answered are written from here; who dispatches now finds the others by itself.
        self.set_aside.keep(self.early_acks.acked_ns)

    # Health

    def troubles(self) -> tuple[Trouble, ...]:
        """Return everything that may be failing."""
        return self.claiming, self.polls.trouble, self.health, self.unserved

    @property
    def is_failing(self) -> bool:
        """Return whether something does not work at this moment."""
        return (
            self.claiming.since_ns is not None
            or self.polls.trouble.since_ns is not None
            or self.health.since_ns is not None
            or self.unserved.since_ns is not None
        )

    def lost_ns(self, grace_ns: int) -> int:
        """Return when the streams that cover the shard are lost, if it goes on like this."""
        since_ns = (each.since_ns for each in self.troubles() if each.since_ns is not None)
        return min(min(since_ns, default=FOREVER_NS) + grace_ns, FOREVER_NS)

    def has_more(self, now_ns: int) -> bool:
        """Return whether there is something to send to a stream that takes it."""
        first_ns = self.queue.first_ns()
        return (first_ns is not None and first_ns <= now_ns) or bool(self.lost.waiting)

    def is_quiet(self, now_ns: int, *, has_claimed: bool = False) -> bool:
        """Return whether an ack leaves nothing to be done by which no receiver gets room: all else has its moment.

        has_claimed: or a claim that has ended, which leaves its slot, and rows to be looked at or polled.
        """
        return (
            self.wake_ns > now_ns
            and self.order is None
            and self.gates.in_flight is None
            and self.groups.next_ns() > now_ns
            and self.queue.next_poll_ns() is None
            and not self.is_failing
            and not (
                has_claimed
                and (
                    not self.receivers
                    or not self.is_dispatched
                    or self.polls.wanted
                    or self.leases.is_to_look
                    or self.has_more(now_ns)
                )
            )
        )

    def wake_for_first(self, now_ns: int) -> None:
        """Give the first message its moment, if it is not due yet: one that was due may have stood before it."""
        first_ns = self.queue.first_ns()
        if first_ns is not None and first_ns > now_ns:
            self.wake_ready_ns = min(self.wake_ready_ns, first_ns)

    def settled(self, now_ns: int, lost_ns: int) -> None:
        """Note when to look again, now that all has been done that can be done."""
        first_ns = self.queue.first_ns()
        is_due = first_ns is not None and first_ns <= now_ns
        if not is_due and not self.claims:
            # Nothing is left that a claim could fail on.
            self.claiming.over()
        self.wake_ns = min(lost_ns, self.polls.start_ns())
        follower_ns = FOREVER_NS if self.order is None else self.order.next_ns()
        self.wake_ns = min(self.wake_ns, self.gathered_ns, self.groups.next_ns(), follower_ns)
        self.wake_ns = min(self.wake_ns, self.lost.next_ns())
        # What is due but not claimed waits for a slot or a receiver, unless a claim failed.
        if first_ns is not None and not (is_due and self.claiming.retry_ns <= now_ns):
            self.wake_ready_ns = max(first_ns, self.claiming.retry_ns)
        else:
            # What is due may be of other keys than the ready receivers named.
            self.wake_ready_ns = min(self.held_back_ns, self.queue.next_named_ns(now_ns))
