"""The thin shell of one table's scheduler: carries out the decisions of `engine.messaging.dispatch.table_state`.

An event is handled in the caller's turn of the loop, so a commit reaches its claim without a
detour through a queue or a task. Only acks wait until the answers of their clients have left.
Polls, claims and releases run as tasks; one timer per table wakes the state when work is
due without an event.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from streamfrom.engine.clock import WakeTimer
from streamfrom.engine.errors import ReceiverGone
from streamfrom.engine.messaging.acks.ack_writes import WriteAcks
from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch import events
from streamfrom.engine.messaging.dispatch.table_state import TableState
from streamfrom.engine.messaging.shell.purger import Purger
from streamfrom.engine.messaging.shell.table_log import TableLog
from streamfrom.engine.messaging.table.store_job import Access


if TYPE_CHECKING:
    from streamfrom.engine.clock import Clock
    from streamfrom.engine.messaging.table.message import ClaimedRow, ClaimResult, Receiver
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.table.store_job import Store
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.sqlparse_ext.errors import StreamfromError


# The wall clock may be set forward, which the loop's clock does not notice: look again.
SLEEP_MAX_S: Final = 5.0
STOP_GRACE_S: Final = 2.0
# For a server that is slow to write acks that were answered.
ACKS_GRACE_S: Final = 10.0
ACKS_LOOK_S: Final = 0.01
# A reschedule waits no longer than this for a server that writes slowly.
SHOW_LEASES_S: Final = 2.0
# How often a handover checks whether the rows show everything.
HAND_OVER_LOOK_S: Final = 0.01


class Runner:
    """The parts of one message table that need a loop.

    Built inside a running loop and running at once; `stop` returns when nothing runs any more.

    table: as it is scheduled now.
    state: the scheduler, for reading.
    """

    def __init__(
        self,
        table: MessageTable,
        shards: Iterable[ShardName],
        store: Store,
        *,
        clock: Clock,
        draw: Callable[[], int],
        grace_ns: int,
        may_send: Callable[[ShardName], bool] = lambda _: True,
        has_written: Callable[[ShardName], None] = lambda _: None,
    ) -> None:
        self._may_send = may_send
        # Called when rows were acked or claimed, because triggers of the table may have written elsewhere.
        self._has_written = has_written
        self.table = table
        self._log = TableLog(table)
        self._store = store
        self._clock = clock
        self._draw = draw
        self._loop = asyncio.get_running_loop()
        self.state = TableState(table, shards, grace_ns)
        self._receivers: dict[int, Receiver] = {}
        self._hearers: dict[int, Callable[[events.StreamReport], None]] = {}
        self._events: deque[events.Event] = deque()
        self._is_handling = False
        self._freed: list[int] = []  # receivers whose sockets took their rows of this event
        self._timer = WakeTimer(
            self._loop, clock.time_ns, partial(self.post, events.Tick()), SLEEP_MAX_S
        )
        self._tasks: dict[asyncio.Task[None], events.ShardJob] = {}
        self._is_stopped = False
        self._purger = Purger(table, self.state.shards, store, clock, may_send, self.post)

    @property
    def connection_ids(self) -> dict[int, int]:
        """Return the connection of each receiver's client."""
        return {number: one.connection_id for number, one in self._receivers.items()}

    def attach(
        self,
        receiver: Receiver,
        share: int | None = None,
        hearer: Callable[[events.StreamReport], None] | None = None,
    ) -> None:
        """Start sending messages to *receiver*; no more than *share* at a time, unless that is None.

        hearer: is given changes of the share, and reports, if others may dispatch to it as well.
        """
        self._receivers[receiver.id] = receiver
        if hearer is not None:
            self._hearers[receiver.id] = hearer
        self.post(
            events.Attached(
                receiver.id,
                receiver.shards,
                receiver.columns,
                receiver.prefetch,
                receiver.rows_max,
                receiver.keys,
                share,
                receiver.window_first,
                hearer is not None,
            )
        )

    def detach(self, receiver: Receiver, unsent: Sequence[ClaimedRow] = ()) -> None:
        """Forget *receiver* and release the rows it could not send; twice is fine."""
        if self._pop(receiver.id) is not None or unsent:
            self.post(events.Detached(receiver.id, tuple(unsent)))

    def _pop(self, receiver: int) -> Receiver | None:
        self._hearers.pop(receiver, None)
        return self._receivers.pop(receiver, None)

    def left(self, receiver: int, grace_ns: int = 0) -> None:
        """Make the messages of a detached receiver due again soon: its client's connection has ended, or will in *grace_ns*."""
        if not self._is_stopped:
            self.post(events.Left(receiver, grace_ns))

    def held_by(self, receiver: Receiver) -> Mapping[ShardName, tuple[bytes, ...]]:
        """Return the messages that *receiver*, attached or not, holds, by shard."""
        self.post(events.Tick())
        return self.state.held_by(receiver.id)

    async def released(self) -> None:
        """Return when rows show which messages were sent from here, and which are due sooner because clients have left.

        This waits no longer than SHOW_LEASES_S.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(SHOW_LEASES_S):
                while any(shard.is_releasing for shard in self.state.shards):  # noqa: ASYNC110  (many events lead there)
                    await asyncio.sleep(HAND_OVER_LOOK_S)

    def held(self) -> int:
        """Return how many messages were sent and are neither acked nor due again."""
        self.post(events.Tick())
        return self.state.held

    def reconfigure(self, table: MessageTable) -> None:
        """Apply a changed definition; streams continue."""
        self.table = self._log.table = table
        self._purger.reconfigure(table)
        self.post(events.Reconfigured(table))

    def post(self, event: events.Event) -> None:
        """Handle *event* before returning, unless another one is being handled right now."""
        self._events.append(event)
        self._handle()

    def post_soon(self, event: events.Event) -> None:
        """Handle *event* in the next turn of the loop, or ahead of any event that is posted before then.

        So the client that waits for an answer gets it first, and starts on its next message: 15 % more single acks a
        second by 16 consumers, and of 100 messages by one on MySQL.
        """
        self._events.append(event)
        self._loop.call_soon(self._handle)

    def _handle(self) -> None:
        # A receiver that is handed rows may answer by detaching: that event is handled here in turn.
        if self._is_handling or not self._events:
            return
        self._is_handling = True
        try:
            while self._events:
                for action in self.state.handle(self._events.popleft(), self._clock.time_ns()):
                    self._carry_out(action)
                if self._freed:
                    # They are served together, six of a claim in a drain. A lone message leaves nothing for them.
                    if self.state.free(self._freed, self._clock.time_ns()):
                        self._events.append(events.ReceiverReady(self._freed[-1]))
                    self._freed.clear()
        finally:
            self._is_handling = False
        self._timer.set(self.state.wake_ns())

    async def stop(self, error: StreamfromError) -> None:
        """End every stream with *error*, let running claims finish, then stop. Twice is fine."""
        await self._purger.stop()
        self.post(events.TableEnded(error))
        deadline = self._loop.time() + STOP_GRACE_S
        acks_deadline = self._loop.time() + ACKS_GRACE_S
        # A claim that ends now is followed by the release of rows that no consumer can be sent; and acks that were answered are
        # written as far as the server takes them.
        while self._tasks and (left_s := deadline - self._loop.time()) > 0:
            await asyncio.wait(self._tasks, timeout=left_s)
        while self._loop.time() < acks_deadline and any(  # noqa: ASYNC110
            shard.has_acks_to_write for shard in self.state.shards
        ):
            await asyncio.sleep(ACKS_LOOK_S)
        for shard in self.state.shards:
            if shard.early_acks:
                self._log.acks_lost(shard.name, [*shard.early_acks.acked_ns])
        self._is_stopped = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._timer.cancel()

    def _carry_out(self, action: events.Action) -> None:
        match action:
            case events.Deliver():
                self._deliver(action)
            case events.End():
                receiver = self._pop(action.receiver)
                if receiver is not None:
                    receiver.end(action.error)
            case events.Finish():
                receiver = self._pop(action.receiver)
                if receiver is not None:
                    receiver.finish()
            case events.ReportDeadMembers():
                self._log.dead_members(action.shard, action.found)
            case events.ReportSetAside():
                self._log.set_aside(action.shard, action.found, action.count)
            case events.ReportStanding():
                if (receiver := self._receivers.get(action.receiver)) is not None:
                    since_s = (self._clock.time_ns() - action.since_ns) / 10**9
                    self._log.standing(receiver, action, since_s)
            case events.KeepsShare() | events.WantShare() | events.ReportProgress():
                if hearer := self._hearers.get(action.receiver):
                    hearer(action)
            case _:
                task = self._loop.create_task(self._do(action))
                self._tasks[task] = action
                task.add_done_callback(self._tasks.pop)

    def _deliver(self, action: events.Deliver) -> None:
        # Unknown: it detached while earlier actions of this turn were carried out.
        receiver = self._receivers.get(action.receiver)
        if hearer := self._hearers.get(action.receiver):
            hearer(action)
        try:
            can_take_more = receiver is not None and receiver.deliver(action.rows)
        except ReceiverGone:
            self._pop(action.receiver)
            receiver = None
        else:
            if can_take_more:
                self._freed.append(action.receiver)
        if receiver is None:
            self.post(events.Detached(action.receiver, action.rows))

    def give_up_reads(self, shard: ShardName) -> None:
        """Stop reading for a shard that is no longer dispatched from here: its server may have fallen silent."""
        for task in self._at_work(shard, reads=True):
            task.add_done_callback(partial(self._given_up, self._tasks[task]))
            task.cancel()

    def _given_up(self, job: events.ShardJob, task: asyncio.Task[None]) -> None:
        if task.cancelled() and not self._is_stopped:
            self.post(events.JobDone(job, None, "given up"))

    def _at_work(self, shard: ShardName, *, reads: bool = False) -> list[asyncio.Task[None]]:
        """Return the tasks that write to a shard, or those that read."""
        return [
            task
            for task, job in self._tasks.items()
            if job.shard == shard and (job.access is Access.READ) is reads
        ]

    def ack_early(self, shard: ShardName, ids: tuple[bytes, ...], acked_ns: int) -> int | None:
        """Take an ack that is written soon; return how many messages it acknowledges, None if it cannot be taken."""
        if self._is_stopped:
            return None
        self._handle()  # a commit may have acknowledged the same messages in this turn
        state = self.state.shard(shard)
        taken = state.takes_acks(ids, self._clock.time_ns())
        if taken:
            state.counters.acked += len(taken)
            self.post(events.AckedEarly(shard, taken, acked_ns))
        return None if taken is None else len(taken)

    async def show_leases(self, shard: ShardName, ids: tuple[bytes, ...] | None) -> None:
        """Write that messages were sent or acked early, of *ids* or all, before a client changes their rows.

        It waits for no locked row, and no longer than SHOW_LEASES_S.
        """
        asked: set[bytes] = set()
        # Messages that are sent from now on came after the caller.
        state = self.state.shard(shard)
        left = state.unshown(ids)
        with suppress(TimeoutError):
            async with asyncio.timeout(SHOW_LEASES_S):
                while unwritten := state.unshown(left):
                    wanted = tuple(ident for ident in unwritten if ident not in asked)
                    if wanted:
                        asked.update(wanted)
                        self.post(events.LeasesWanted(shard, wanted))
                    # Nothing is being written, so the rest cannot be written now.
                    if not (writing := self._at_work(shard)):
                        return
                    await asyncio.wait(writing, return_when=asyncio.FIRST_COMPLETED)

    async def drain(self, shard: ShardName) -> None:
        """Return when nothing is being written to *shard*: a claim may lead to a release."""
        while writing := self._at_work(shard):
            await asyncio.wait(writing)

    async def _do(self, job: events.ShardJob) -> None:
        result: Any = None
        failure = None
        asked = replace(job, draw=self._draw) if isinstance(job, Claim) else job
        try:
            result = await self._store.run(self.table, job.shard, asked)
        except Exception as error:  # noqa: BLE001  (whatever it was, no waiter must wait forever)
            self._log.failed(job.name, job.shard, error)
            failure = str(error)
        else:
            self._log.works(job.name, job.shard)
            if isinstance(job, Claim):
                self._claimed(job.shard, result)
        if isinstance(job, WriteAcks):
            self._has_written(job.shard)
        self.post(events.JobDone(job, result, failure))

    def _claimed(self, shard: ShardName, result: ClaimResult) -> None:
        counters = self.state.shard(shard).counters
        self._has_written(shard)
        if result.parked or result.dead:
            counters.parked += len(result.parked)
            counters.dead_lettered += len(result.dead)
            self._log.spent(shard, result)
        # If it may not, the state knows so before it learns which rows it won.
        self._may_send(shard)
