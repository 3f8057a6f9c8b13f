"""How the messages of one table are sent: claimed for receivers that are ready, shared out, or released. Pure."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch.events import Deliver
from streamfrom.engine.messaging.dispatch.receivers import COMPARED_MAX, by_room, share_out
from streamfrom.engine.messaging.dispatch.shard_state import ClaimRun
from streamfrom.engine.messaging.leases.lease_rows import FindLeases, Release
from streamfrom.engine.messaging.order.key_order import with_keys
from streamfrom.engine.messaging.queue.shard_queue import REMOVED
from streamfrom.engine.messaging.streams.prefetch_window import PrefetchWindow
from streamfrom.engine.messaging.table.message import FOREVER_NS, MessageKey


if TYPE_CHECKING:
    from streamfrom.engine.messaging.dispatch.held_messages import HeldMessages
    from streamfrom.engine.messaging.dispatch.shard_state import ShardState
    from streamfrom.engine.messaging.dispatch.table_parts import TableParts
    from streamfrom.engine.messaging.streams.attached_receiver import AttachedReceiver
    from streamfrom.engine.messaging.table.message import ClaimedRow, ClaimResult, Refusals


# On a shard. Messages that become due meanwhile go into the next claim, like a group commit.
CLAIMS_IN_FLIGHT_MAX: Final = 2
CLAIM_ROWS_MAX: Final = 500
# A claim's rows are in memory until their sockets have taken them. The length of a body is unknown
# until it has been read, so the first claim is a small one.
CLAIM_BYTES_MAX: Final = 16 << 20
ROW_BYTES_ASSUMED: Final = 256 << 10
# Rows that are set aside: beyond this number, others of their key wait.
LEFT_OUT_MAX: Final = 200


class Sending:
    """The claims, deliveries and releases of one table."""

    def __init__(self, parts: TableParts, held: HeldMessages) -> None:
        self._parts = parts
        self._shards = parts.shards
        self._receivers = parts.receivers
        self._actions = parts.actions
        self._held = held
        self._row_bytes = 0  # of the longest recent rows

    # Claims

    def claim(self, shard: ShardState, now_ns: int) -> None:
        """Start claims while there are due keys, ready receivers and free slots."""
        shard.gathered_ns = shard.held_back_ns = FOREVER_NS
        if shard.order is not None:
            shard.order.wake(now_ns)
        if shard.lost.waiting:
            ready = {o.id for o in self._receivers.ready.values() if o.covers(shard.name)}
            for key in shard.lost.freed(ready, now_ns):
                shard.queue.requeue(key.id, key, now_ns)
        if shard.claiming.retry_ns > now_ns or not self._may_send(shard):
            return
        limit = shard.gates.in_flight
        if limit is not None and not limit.is_known:
            if limit.reading is None:
                limit.reading = job = FindLeases(shard.name)
                self._actions.append(job)
            return
        if shard.order is None:
            while len(shard.claims) < CLAIMS_IN_FLIGHT_MAX and self._start_claim(shard, now_ns):
                pass
        # If messages wait for others of their key, a claim may win rows that were not requested. So each must see the messages
        # that the one before has sent, and those that a release has put back.
        elif not shard.queue.in_flight:
            self._start_claim(shard, now_ns)

    def _start_claim(self, shard: ShardState, now_ns: int) -> bool:
        """Start a claim for receivers of the same keys, those served longest ago; return whether there is one."""
        batch = self._parts.table.properties.batch_size
        for choice in list(self._receivers.choices):
            due = shard.queue.due(now_ns, at_most=self._claim_rows_max(), keys=choice)
            if not due:
                continue
            if not (due := shard.gates.room(due, now_ns)):
                if shard.hold_back(now_ns):
                    self._held.look_after(shard, now_ns)
                return False
            if receivers := self._receivers.choose(shard, due, batch, now_ns, choice):
                self._receivers.choices.move_to_end(choice)
                self._claim_for(shard, receivers, share_out(due, receivers, batch), now_ns)
                return True
        return False

    def _claim_for(
        self,
        shard: ShardState,
        receivers: list[AttachedReceiver],
        counts: list[int],
        now_ns: int,
    ) -> None:
        receivers = receivers[: len(counts) - counts.count(0)]
        columns, choice = receivers[0].columns, receivers[0].keys
        keys = shard.queue.take(sum(counts), now_ns, choice)
        if shard.order is None and self._are_others(shard, receivers):
            keys = shard.lost.keep_back(keys, receivers)
            if not keys:
                return
        for receiver in receivers:
            receiver.is_reserved = True
            del self._receivers.ready[receiver.id]
        number = shard.last_claim = self._parts.number()
        run = shard.claims[number] = ClaimRun(
            keys={key.id: key for key in keys},
            receivers=[receiver.id for receiver in receivers],
            columns=columns,
            begun_ns=now_ns,
            choice=choice,
        )
        ids, unwritten = tuple(run.keys), shard.unwritten.timers
        if shard.order is None:
            sent = {ident: unwritten[ident] for ident in ids if ident in unwritten}
            self._actions.append(Claim(number, shard.name, ids, columns, sent))
            return
        aside = islice(shard.set_aside.timers, LEFT_OUT_MAX)
        self._actions.append(
            Claim(
                number,
                shard.name,
                ids,
                columns,
                unwritten=ChainMap(unwritten, run.shown),
                known_keys=shard.order.known_keys(ids),
                sent_keys=shard.order.started,
                left_out=frozenset(aside).difference(ids),
                held_ns=shard.leases.longer_than_shown(),
            )
        )

    def _are_others(self, shard: ShardState, receivers: list[AttachedReceiver]) -> bool:
        """Return whether other streams take the same messages as *receivers*."""
        attached = self._receivers.attached
        return len(attached) > len(receivers) and any(
            other not in receivers
            and other.covers(shard.name)
            and other.keys == receivers[0].keys
            for other in attached.values()
        )

    def _may_send(self, shard: ShardState) -> bool:
        return shard.is_dispatched and not self._parts.table.properties.paused

    def _claim_rows_max(self) -> int:
        """Return how many rows of the recent size one claim may take."""
        row_bytes = self._row_bytes or ROW_BYTES_ASSUMED
        return max(1, min(CLAIM_BYTES_MAX // row_bytes, CLAIM_ROWS_MAX))

    def _note_size(self, rows: Sequence[ClaimedRow]) -> None:
        if rows:
            # The largest of a claim, not the mean: one long body among short ones counts.
            # It is halved with each claim, so that a single one does not slow the queue forever.
            largest = max(len(row.payload) for row in rows)
            self._row_bytes = max(largest, self._row_bytes // 2, 1)

    def claimed(
        self, shard: ShardState, claim: Claim, result: ClaimResult, now_ns: int
    ) -> None:
        """Deliver the rows that a claim won, and make the rest wait."""
        run = shard.claims.pop(claim.number)
        if shard.order is not None:
            result = with_keys(result, run.keys)
            shard.polls.named_wanted = True  # the next message may have a key that streams name
        rows, passed_over = result.rows, result.passed_over
        self._note_size(rows)
        shard.groups.held(result.held)
        shard.groups.gone(result.parked)  # its waiters are informed
        shard.claiming.over()
        shard.health.over()
        # The shard works; a poll may be slow for other reasons.
        shard.polls.trouble.since_ns = None
        asked_ids, chosen = tuple(run.keys), result.chosen
        won: list[ClaimedRow] = []
        unwritten: list[MessageKey] = []
        # The server answers along its index; the keys are in the order of delivery.
        order = {ident: index for index, ident in enumerate(run.keys)}
        for row in sorted(rows, key=lambda row: order.get(row.id, len(order))):
            asked = run.keys.pop(row.id, None) or chosen.get(row.id)
            if asked is None:
                # The database finds this id equal to a requested one (another case,
                # another spelling); only a poll shows its priority.
                shard.polls.wanted = True
                won.append(row)
                continue
            # `_replace` takes three times as long, for each message.
            timer = MessageKey(asked.id, asked.priority, row.due_next_ns, asked.key)
            if row.is_written:
                shard.rows_show((row.id,))
            meanwhile = shard.queue.requeue(row.id, timer, now_ns)
            if meanwhile is REMOVED or row.id in run.gone:
                continue  # acked while the claim ran: never sent again
            if not row.is_written:
                unwritten.append(meanwhile or timer)
            if meanwhile is not None:
                # Rescheduled while the claim ran. Only the database knows which
                # of the two came first.
                shard.polls.wanted = True
            won.append(row)
        if shard.set_aside or result.refused:
            self._set_aside(shard, run, asked_ids, result, now_ns)
        for ident, key in run.keys.items():
            shard.queue.not_won(key, passed_over.get(ident), now_ns)
        if shard.order is not None and shard.order.claimed(asked_ids, result, run.gone, now_ns):
            shard.polls.wanted = True
        if unwritten:
            delay_ns = self._parts.table.properties.lease_delay_ns
            shard.unwritten.sent(unwritten, now_ns + delay_ns)
        self._deliver(shard, run, won, now_ns)

    def _set_aside(
        self,
        shard: ShardState,
        run: ClaimRun,
        asked_ids: Sequence[bytes],
        result: ClaimResult,
        now_ns: int,
    ) -> None:
        """Postpone messages whose rows the server refuses to write; forget earlier refusals of others."""
        aside, refused, passed_over = shard.set_aside, result.refused, result.passed_over
        over = [row.id for row in result.rows]
        known = {*passed_over, *result.asked_keys}
        over += [one for one in asked_ids if one not in known]
        over += [one for one, due_ns in passed_over.items() if due_ns > now_ns]
        aside.over(one for one in over if one not in refused)
        # Locked rows, and rows that wait for their turn, are claimed like others.
        aside.changed([one for one in asked_ids if one not in refused], now_ns)
        self._parts.refuse(shard, refused, now_ns)
        for ident in refused:
            key = run.keys.pop(ident, None) or result.chosen.get(ident)
            if key is None:
                shard.polls.wanted = True  # of another spelling: only a poll shows its priority
                continue
            meanwhile = shard.queue.requeue(ident, aside.wait(key, now_ns), now_ns)
            if meanwhile is REMOVED or ident in run.gone:
                aside.over([ident])
            elif meanwhile is not None:
                aside.changed([ident], now_ns)

    def _deliver(
        self, shard: ShardState, run: ClaimRun, won: list[ClaimedRow], now_ns: int
    ) -> None:
        """Share *won* out; release rows that no receiver can take, or that must no longer be sent."""
        present = [
            self._receivers.attached[i] for i in run.receivers if i in self._receivers.attached
        ]
        for receiver in present:
            receiver.is_reserved = False
        may_send = self._may_send(shard)
        start = self._share(shard, run, present, won, now_ns) if may_send else 0
        if may_send and start < len(won):
            others = (
                receiver
                for receiver in self._receivers.ready.values()
                if receiver.covers(shard.name)
                and receiver.columns == run.columns
                and receiver.keys == run.choice
                and receiver.room
            )
            chosen = list(islice(others, COMPARED_MAX))
            chosen = [one for one in chosen if not one.has_stalled] or chosen
            start += self._share(shard, run, chosen, won[start:], now_ns)
        # A receiver that was reserved and got nothing has waited longest, and is the first again.
        for receiver in reversed(present):
            self._receivers.not_reserved(receiver)
        if run.is_suspect:
            shard.leases.suspect([row.id for row in won[:start]])
        self.release(shard, won[start:], now_ns)

    def _share(
        self,
        shard: ShardState,
        run: ClaimRun,
        receivers: list[AttachedReceiver],
        rows: list[ClaimedRow],
        now_ns: int,
    ) -> int:
        """Give *rows* to *receivers*; return how many were given."""
        receivers.sort(key=by_room)
        counts = share_out(len(rows), receivers, self._parts.table.properties.batch_size)
        ends = list(accumulate(counts, initial=0))
        batches = [rows[start:end] for start, end in pairwise(ends)]
        shard.lost.part(batches, receivers, self._parts.table.properties.batch_size)
        for receiver, batch in zip(receivers, batches, strict=True):
            if batch:
                self._give(shard, run, receiver, batch, now_ns)
        return ends[-1]

    def _give(
        self,
        shard: ShardState,
        run: ClaimRun,
        receiver: AttachedReceiver,
        rows: Sequence[ClaimedRow],
        now_ns: int,
    ) -> None:
        receiver.has_batch = True
        self._receivers.ready.pop(receiver.id, None)
        shard.counters.has_sent(rows, now_ns)
        if shard.gates.rate is not None:
            shard.gates.rate.sent(len(rows), now_ns)
        for lease in shard.leases.give(receiver.id, rows, now_ns, receiver.sent, run.begun_ns):
            self._receivers.give_room(lease.receiver)  # sent again, past its lease
        receiver.took(len(rows), now_ns)
        if receiver.room:  # it was given all there was
            self._receivers.change_window(receiver, PrefetchWindow.starved)
        if receiver.rows_left is not None:
            self._receivers.finishing[receiver.id] = receiver
        if receiver.room == 0:
            self._receivers.is_full(receiver)
        self._actions.append(Deliver(receiver.id, tuple(rows)))

    def claim_failed(self, shard: ShardState, claim: Claim, reason: str, now_ns: int) -> None:
        """Make the messages of a failed claim due again after a pause. The claim may have been committed."""
        run = shard.claims.pop(claim.number)
        shard.claiming.failed(reason, now_ns, self._parts.grace_ns)
        # It may have been committed before the connection was lost: then a poll shows when they are due.
        shard.polls.wanted = True
        shard.groups.held(run.keys)
        for key in run.keys.values():
            shard.queue.requeue(key.id, key, now_ns)
        shard.freed(None, now_ns)
        self._deliver(shard, run, [], now_ns)

    # Releases

    def release(self, shard: ShardState, unsent: Sequence[ClaimedRow], now_ns: int) -> None:
        """Undo the delivery of rows; claimed ones are in flight until that is done.

        A message that is being claimed again was due again already, and one that was acked early meanwhile is done.
        """
        queue = shard.queue
        rows = [
            row
            for row in shard.put_back_unwritten(unsent, now_ns)
            if not (queue.is_in_flight(row.id) or row.id in queue.acked)
        ]
        shard.counters.returned += len(unsent)
        if not rows:
            return
        number = self._parts.number()
        shard.releases[number] = {row.id: shard.queue.put_in_flight(row.id) for row in rows}
        self._actions.append(Release(number, shard.name, tuple(rows)))

    def released(
        self, shard: ShardState, job: Release, refused: Refusals | None, now_ns: int
    ) -> None:
        """Make released messages due again; if all of it failed, or for *refused*, at the time that the claim wrote."""
        keys = shard.releases.pop(job.number)
        shard.freed([row.id for row in job.rows], now_ns)
        put_back = set[bytes]()
        if refused is not None:
            self._parts.refuse(shard, refused, now_ns)
            put_back = {row.id for row in job.rows if row.id not in refused}
        for row in job.rows:
            key = keys[row.id]
            if key is not None and row.id in put_back:
                key = key._replace(time_next_ns=row.time_next_ns)
            if key is None:
                # It had left the queue: acked, or due too late to be kept.
                shard.polls.wanted = True
            shard.queue.requeue(row.id, key, now_ns)
