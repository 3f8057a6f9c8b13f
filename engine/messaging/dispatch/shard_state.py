"""One shard of one message table: its queue, the work under way on it, and its health.

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


# A client that takes messages one by one opens a stream for each. If the keys were dropped, each stream would begin with a
# poll, which took 0.55 of the 1.3 ms of a STREAM … LIMIT 1.
LINGER_NS: Final = 10**9


@dataclass(slots=True)
class ClaimRun:
    """A claim under way, and the receivers reserved for it.

    begun_ns: when it was requested. Leases run from the claim on; a consumer's wait for a message starts with its delivery.
    choice: the keys that its receivers named; None for all.
    is_suspect: rows were changed meanwhile, perhaps after the claim and perhaps those it won.
    gone: messages that were acked or deleted meanwhile, and that it may win without a request.
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
    """The state of one shard, as a table's scheduler keeps it.

    is_dispatched: this process dispatches the shard.
    partitions_overdue: as counted by the last purge.
    receivers: how many streams cover the shard.
    lingers_until_ns: until when keys are kept, and news is taken, after the last stream has left; 0 if no keys are kept.
    unwritten: the leases that exist only in memory.
    early_acks: the acks that exist only in memory.
    put_back: rows that were sent to no receiver, and whose leases are being written at this moment.
    releases: keys that are being released, by the number of the release.
    gathered_ns: when receivers that let room gather take as much as they have room for.
    order: which messages wait for others of their key; None if none does.
    held_back_ns: when more may be sent, if nothing happens before and a limit holds back due messages.
    wake_ns: when the shard has work to do without an event.
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
        """Process the result of a poll."""
        self.health.over()
        if self.set_aside.timers:
            keys = chain.from_iterable((*tier.fresh, *tier.timed) for tier in result.tiers)
            spans = chain.from_iterable(read.keys for read in result.spans or ())
            self.set_aside.polled(chain(keys, spans, result.news), now_ns)
        self.polls.finished(result, now_ns, interval_ns)

    def has_nothing(self, now_ns: int, keys: frozenset[bytes] | None = None) -> bool:
        """Return whether no message is due, of *keys* if given, as far as can be known without a poll."""
        if not self.is_dispatched:
            # Its dispatcher reports what is due.
            return self.unserved.since_ns is None
        if self.queue.news or self.queue.due(now_ns, at_most=1, keys=keys):
            return False
        if keys:
            # Polls for rows of other keys that were left out may continue without end.
            left_out_ns = self.queue.next_poll_ns(keys)
            is_left_out = left_out_ns is not None and left_out_ns <= now_ns
            return not (is_left_out or self.polls.is_asking(now_ns))
        return self.polls.is_resting(now_ns)

    # Limits

    def hold_back(self, now_ns: int) -> bool:
        """Note until when gates hold back due messages; return whether to look at those in flight."""
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
        """Free messages that waited for *idents*, or for any others of their key."""
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
        """Return how many messages wait or are held, as far as is known. This is how many rows changes affect."""
        return len(self.queue) + self.queue.in_flight + len(self.leases)

    # Receivers

    def join(self, now_ns: int) -> None:
        """Count a new receiver; the first one causes a poll, unless a message is known to be due."""
        self.receivers += 1
        self.gates.first_stream(now_ns)
        if self.receivers == 1:
            if not self.queue.due(now_ns, at_most=1):
                self.polls.begin(now_ns)
            self.lingers_until_ns = 0
            # A stream that opens while the shard is down has its whole grace period ahead.
            for trouble in (self.health, self.unserved):
                if trouble.since_ns is not None:
                    trouble.since_ns = now_ns

    def leave(self, now_ns: int) -> None:
        """Count a receiver that left. Some time after the last one the queue is emptied, at once if the shard fails."""
        self.receivers -= 1
        if self.receivers == 0:
            if self.is_failing:
                self.rest()
            else:
                self.lingers_until_ns = now_ns + LINGER_NS

    def linger(self) -> None:
        """Only take news until it is time to rest."""
        self.wake_ns, self.wake_ready_ns = self.lingers_until_ns, FOREVER_NS
        self.gathered_ns = self.held_back_ns = FOREVER_NS

    def rest(self) -> None:
        """Forget the keys and do nothing. Streams keep the messages they were sent."""
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
        """Start again, as after an election: times planned by the former clock would come late."""
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

    # Leases and acks that exist only in memory

    @property
    def writes_ns(self) -> int:
        """Return when to write, update or shorten the next leases or acks."""
        # Acks are written whichever member is the dispatcher now, because they are true.
        write_ns = self.early_acks.next_ns()
        if self.is_dispatched:
            write_ns = min(write_ns, self.unwritten.next_ns())
            write_ns = min(write_ns, self.leaving.next_ns())
            if (look_ns := self.leases.first_look_ns()) is not None:
                write_ns = min(write_ns, look_ns)
        return write_ns

    def takes_acks(self, idents: Iterable[bytes], now_ns: int) -> tuple[bytes, ...] | None:
        """Return those of *idents* that an early ack acknowledges; None if it cannot be answered early.

        It can if each message is in flight as far as is known here, or was acked early before.
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
        """Return whether rows do not yet show messages that were sent from here, or that leaving clients held."""
        return self.is_dispatched and (bool(self.leaving) or self._are_written(self.unwritten))

    @property
    def has_acks_to_write(self) -> bool:
        """Return whether there are acks to write that the server, as far as is known, takes."""
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
        """Write at once the leases that rows do not show, of *idents* or of all messages."""
        self.renew(self.leases.lagging(idents), now_ns)
        self.unwritten.hurry(idents)

    def renew(self, batches: Iterable[Batch], now_ns: int) -> None:
        """Bring leases up to date, and write them soon."""
        for batch in batches:
            self._ends_moved(self.leases.renew(batch), now_ns)

    def _ends_moved(self, moved: Iterable[tuple[bytes, int, int]], now_ns: int) -> None:
        """Move the due times of messages to the new ends of their leases, and write these soon: each with its former and new end."""
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
        """Process the result of writing leases; return rows that it covered and that were sent to no receiver.

        again_ns: when to try again the rows that the server refuses.
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
        if done:  # if none was written, trying at once would be trying without a pause
            self.leaving.retry(now_ns)
        put_back, self.put_back = self.put_back, []
        return put_back

    def rows_show(self, idents: Iterable[bytes]) -> dict[bytes, MessageKey]:
        """Note that rows now show that messages were sent; return the keys of those whose rows did not."""
        timers = self.unwritten.timers
        shown = {ident: timers.pop(ident) for ident in idents if ident in timers}
        for run in self.claims.values():
            run.shown |= shown
        return shown

    def next_write(self, now_ns: int) -> tuple[LeaseWrite, ...]:
        """Return leases to write now.

        A poll reads past the rows of unwritten ones: they may be half as many at most.
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

        Their leases should have been written first, which is impossible while the client's transaction holds the row.
        """
        for ident in idents:
            if (timer := self.unwritten.timers.get(ident)) is not None:
                self.queue.add(timer._replace(time_next_ns=0), now_ns)

    def looked(
        self, time_next_ns: Mapping[bytes, int], now_ns: int
    ) -> tuple[list[Lease], list[Lease]]:
        """Process the result of a look; return the leases that are over, and those that heartbeats extended."""
        given_back, prolonged = self.leases.looked(time_next_ns, now_ns)
        for lease in prolonged:
            self.queue.renew(lease.id, lease.until_ns, now_ns)
        if late := [lease.id for lease in prolonged if lease.id in self.leases.shown_ns]:
            self.unwritten.renewed(late, now_ns)
        self.freed([lease.id for lease in given_back], now_ns)
        return given_back, prolonged

    def put_back_unwritten(self, rows: Iterable[ClaimedRow], now_ns: int) -> list[ClaimedRow]:
        """Make rows due again that were sent to no receiver; return those that were written."""
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

    # Elections

    def elected(self, now_ns: int) -> None:
        """Dispatch from now on, starting with a poll."""
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
        # Unwritten leases, and those of receivers that left, are kept, because only the dispatcher writes. Another one sends again
        # the messages that no row shows; this one, if it is the next, does not. Rows that the other has written are then skipped.
        # Answered acks are written from here; the new dispatcher finds the other rows without help.
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
        """Return when the streams that cover the shard are lost, if the failure lasts."""
        since_ns = (each.since_ns for each in self.troubles() if each.since_ns is not None)
        return min(min(since_ns, default=FOREVER_NS) + grace_ns, FOREVER_NS)

    def has_more(self, now_ns: int) -> bool:
        """Return whether there is a message to send to a stream that takes it."""
        first_ns = self.queue.first_ns()
        return (first_ns is not None and first_ns <= now_ns) or bool(self.lost.waiting)

    def is_quiet(self, now_ns: int, *, has_claimed: bool = False) -> bool:
        """Return whether an ack leaves no work that needs a receiver with room; all other work has its own time.

        has_claimed: or the end of a claim does, which frees its slot, and leaves rows to look at or poll.
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
        """Set the wake-up for the first message, if it is not due yet: one that was due may have stood before it."""
        first_ns = self.queue.first_ns()
        if first_ns is not None and first_ns > now_ns:
            self.wake_ready_ns = min(self.wake_ready_ns, first_ns)

    def settled(self, now_ns: int, lost_ns: int) -> None:
        """Set the next wake-up, now that everything possible has been done."""
        first_ns = self.queue.first_ns()
        is_due = first_ns is not None and first_ns <= now_ns
        if not is_due and not self.claims:
            # Nothing is left that a claim could fail on.
            self.claiming.over()
        self.wake_ns = min(lost_ns, self.polls.start_ns())
        follower_ns = FOREVER_NS if self.order is None else self.order.next_ns()
        self.wake_ns = min(self.wake_ns, self.gathered_ns, self.groups.next_ns(), follower_ns)
        self.wake_ns = min(self.wake_ns, self.lost.next_ns())
        # Messages that are due but not claimed wait for a slot or a receiver, unless a claim failed.
        if first_ns is not None and not (is_due and self.claiming.retry_ns <= now_ns):
            self.wake_ready_ns = max(first_ns, self.claiming.retry_ns)
        else:
            # Due messages may have other keys than the ready receivers named.
            self.wake_ready_ns = min(self.held_back_ns, self.queue.next_named_ns(now_ns))
