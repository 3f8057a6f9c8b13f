"""Two proxies, a queue whose keys go one by one, and consumers that note when: the order, message by message."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bench import messages
from bench.audit import AuditError
from bench.clients import numbers, open_many
from bench.connection import Connection, QueryError
from bench.fleet import Fleet, FleetError, Signals, Work, Worker
from bench.lab import Endpoint, Keyspace, Lab, await_members
from bench.order_audit import Acknowledgement, Arrival, OrderAudit, order_audit
from bench.plan import Plan
from bench.report import Figure, Goal, Series, Target


if TYPE_CHECKING:
    from array import array

DATABASE: Final = "in_order"
MESSAGES: Final = (20_000, 3_000)
CONSUMERS: Final = 16
PREFETCH: Final = 20
KILLS: Final = 2
# What a dead dispatcher's own consumers held comes again, and its keys go on, when its lease is over.
LEASE_S: Final = 10
NEVER_S: Final = 600
# A run that does fewer messages a second than this has come to a halt.
PER_SECOND_MIN: Final = 50
REST_S: Final = 60.0
TICK_S: Final = 0.002
AGAIN_S: Final = 0.1
DISPATCHES: Final = f"dispatches = '{DATABASE}/0'"
# Of the same key and in the order of the queue, by the moments that the consumers gave.
SWAPPED: Final = (
    "SELECT COUNT(*) FROM (SELECT time_acked, LAG(time_acked) OVER (PARTITION BY tenant ORDER BY id)"
    " AS before_it FROM {}) AS pairs WHERE time_acked < before_it"
)


def order(plan: Plan) -> list[Figure]:
    """Drain 1,000 keys one by one through two proxies, then once more while the dispatcher is killed; audit every message."""
    count = plan.rows or plan.size(*MESSAGES)
    return [
        Figure(
            f"{count:,} messages of {messages.TENANTS:,} keys one by one, {what}: out of order",
            "messages",
            Series.of([len(audit.violations)]),
            target=Target(Goal.AT_MOST, 0, of_ratio=False),
            facts={"per_second": round(per_second), "sent_again": audit.sent_again},
        )
        for what, kills in (("two proxies", 0), (f"{KILLS} dispatchers killed", KILLS))
        for audit, per_second in [_run(plan, count, kills)]
    ]


def _run(plan: Plan, count: int, kills: int) -> tuple[OrderAudit, float]:
    """Return what the audit says, and the messages a second. Raises AuditError for a violation."""
    lab = plan.lab
    with contextlib.ExitStack() as stack:
        stack.enter_context(lab.database(DATABASE))
        # The first one dispatches.
        members = [stack.enter_context(_member(lab))]
        await_members(members[0], DISPATCHES, 1)
        members.append(stack.enter_context(_member(lab)))
        for member in members:
            await_members(member, "is_answering", 2)
        table = messages.tenant_queue(
            lab,
            members[0],
            DATABASE,
            f"key = tenant, key_in_flight = 1, prefetch = {PREFETCH},"
            f" ack_wait = {LEASE_S if kills else NEVER_S}",
            messages.ONE_HAS_HALF,
            count,
        )
        fleet = stack.enter_context(Fleet())
        worker = fleet.add(_consumers([member.port for member in members], table))
        start_ns = fleet.start()
        for number in range(kills):
            _wait(fleet, worker, count * (number + 1) // (kills + 1), count)
            dispatcher, other = members
            os.kill(dispatcher.pid, signal.SIGKILL)
            await_members(other, DISPATCHES, 1)
            members = [other, stack.enter_context(_member(lab, dispatcher.port))]
        _wait(fleet, worker, count, count)
        per_second = count / ((time.time_ns() - start_ns) / 1e9)
        (seen,) = fleet.stop([worker])
        assert isinstance(seen, Seen)
        messages.audited(lab, DATABASE, table, range(1, count + 1), seen.ids)
        audit = order_audit(_keys(count), seen.arrivals(), seen.acks(), has_deaths=kills > 0)
        ((swapped,),) = lab.execute(SWAPPED.format(table), DATABASE)
        plan.say(
            f"  {per_second:,.0f}/s, {audit.sent_again} came again, {audit.read_late} were read after their ack,"
            f" {seen.breaks} connections broke:"
            f" {len(audit.violations)} out of order, {swapped} rows swapped"
        )
        if audit.violations or swapped:
            raise AuditError(f"{audit.text()}; {swapped} rows acknowledged out of order")
        return audit, per_second


def _wait(fleet: Fleet, worker: Worker, enough: int, count: int) -> None:
    seconds = REST_S + count / PER_SECOND_MIN
    if not fleet.wait_for([worker], enough, seconds):
        raise FleetError(f"only {worker.counted} of {count} messages in {seconds:.0f} s")


def _member(lab: Lab, port: int = 0) -> contextlib.AbstractContextManager[Endpoint]:
    return lab.proxy(Keyspace(DATABASE, (lab.server,)), may_be_killed=True, port=port)


def _keys(count: int) -> list[list[int]]:
    """Return the messages of each tenant, as `messages.ONE_HAS_HALF` says."""
    found: list[list[int]] = [[] for _ in range(messages.TENANTS)]
    for id_ in range(1, count + 1):
        found[0 if id_ % 2 else 1 + id_ // 2 % (messages.TENANTS - 1)].append(id_)
    return found


@dataclass(slots=True)
class Seen:
    """What the consumers noted: parallel arrays, a place per delivery and one per ack (see `bench.order_audit`).

    breaks: how many connections broke.
    """

    ids: "array[int]" = field(default_factory=numbers)
    after_ns: "array[int]" = field(default_factory=numbers)
    read_ns: "array[int]" = field(default_factory=numbers)
    acked: "array[int]" = field(default_factory=numbers)
    sent_ns: "array[int]" = field(default_factory=numbers)
    answered_ns: "array[int]" = field(default_factory=numbers)
    affected: "array[int]" = field(default_factory=numbers)
    breaks: int = 0

    def arrivals(self) -> Iterator[Arrival]:
        """Yield each delivery."""
        return map(Arrival, self.ids, self.after_ns, self.read_ns)

    def acks(self) -> Iterator[Acknowledgement]:
        """Yield each ack."""
        return map(Acknowledgement, self.acked, self.sent_ns, self.answered_ns, self.affected)


def _consumers(ports: list[int], table: str) -> Work:
    async def work(signals: Signals) -> Seen:
        seen = Seen()
        consumers = [
            _Consumer(ports[number % 2 :] + ports[: number % 2], table, seen, signals)
            for number in range(CONSUMERS)
        ]

        async def look() -> None:
            while True:
                for consumer in consumers:
                    consumer.look()
                await asyncio.sleep(TICK_S)

        await signals.start()
        await signals.until_stopped(look(), *(consumer.run() for consumer in consumers))
        return seen

    return work


class _Consumer:
    """One stream and the connection of its acks; where one breaks, both go to the other proxy."""

    def __init__(self, ports: list[int], table: str, seen: Seen, signals: Signals) -> None:
        self._ports = ports
        self._table = table
        self._seen = seen
        self._signals = signals
        self._stream: Connection | None = None
        self._empty_ns = 0

    def look(self) -> None:
        """Note the moment, if all that has come is read."""
        now_ns = time.monotonic_ns()
        if self._stream is not None and self._stream.is_drained:
            self._empty_ns = now_ns

    async def run(self) -> None:
        while True:
            opened: list[Connection] = []
            try:
                opened += await open_many(self._ports[0], DATABASE, 2)
                await self._consume(*opened)
            except (OSError, QueryError):
                self._seen.breaks += 1
                self._ports = [*self._ports[1:], self._ports[0]]
                await asyncio.sleep(AGAIN_S)
            finally:
                self._stream = None
                for connection in opened:
                    connection.close()

    async def _consume(self, stream: Connection, acks: Connection) -> None:
        self._empty_ns = time.monotonic_ns()
        await stream.stream(f"STREAM id, message FROM {self._table}")
        self._stream = stream
        work: asyncio.Queue[int] = asyncio.Queue()
        both = [
            asyncio.ensure_future(self._receive(stream, work)),
            asyncio.ensure_future(self._acknowledge(acks, work)),
        ]
        try:
            await asyncio.gather(*both)
        finally:
            for each in both:
                each.cancel()

    async def _receive(self, stream: Connection, work: asyncio.Queue[int]) -> None:
        seen = self._seen
        while True:
            for told_ns, rows in await stream.batches():
                # The connection tells it by the wall clock.
                read_ns = told_ns + time.monotonic_ns() - time.time_ns()
                for row in rows:
                    id_ = int(row[0] or 0)
                    seen.ids.append(id_)
                    seen.after_ns.append(self._empty_ns)
                    seen.read_ns.append(read_ns)
                    work.put_nowait(id_)

    async def _acknowledge(self, acks: Connection, work: asyncio.Queue[int]) -> None:
        seen = self._seen
        while True:
            id_ = await work.get()
            text = messages.ack(self._table, [id_], time.time_ns())
            place = len(seen.acked)
            seen.acked.append(id_)
            seen.sent_ns.append(time.monotonic_ns())
            seen.answered_ns.append(0)
            seen.affected.append(0)
            answer = await acks.query(text)
            seen.answered_ns[place] = time.monotonic_ns()
            seen.affected[place] = answer.affected
            self._signals.count(answer.affected)
            self.look()
