"""Beside RabbitMQ: what a broker does with messages that it keeps on disk, too.

Each side has its own lean client; what both do for a message is told as processor time of their servers.
RabbitMQ answers no acknowledgement, so its consumers wait for none; ours wait for each.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from bench import clients, messages
from bench.fleet import Fleet, FleetError, Work
from bench.lab import Endpoint, Keyspace
from bench.plan import Plan
from bench.report import Figure, Goal, Series, Target
from bench.rivals import rabbitmq
from bench.steady import steady
from bench.workloads.drain import Workers, drain
from bench.workloads.workers import MORTAL_MESSAGES, MORTAL_TAKES, MORTAL_WORK_S, shared


DATABASE = "rivals"
BATCH: Final = 100
BATCH_MESSAGES: Final = (50_000, 20_000)
SINGLE_MESSAGES: Final = (10_000, 4_000)
SINGLE_WORKERS: Final = 16
PREFETCH: Final = 500
STEADY_PER_SECOND: Final = 500
STEADY_S: Final = (12, 5)
END_S: Final = 180.0
AGAINST: Final = "RabbitMQ, quorum queue"


@dataclass(slots=True)
class _Broker:
    """RabbitMQ, and a queue for each run."""

    endpoint: Endpoint
    queues: int = 0

    def run(
        self,
        count: int,
        loaded: int,
        work: Callable[[str], list[Work]],
        extra: Callable[[str], list[Work]],
    ) -> tuple[float, float]:
        """Return the seconds from the start to the last of *count* acks, and the broker's processor time in seconds.

        loaded: how many of the messages are in the queue before the start.
        work, extra: make the consumers and what runs beside them, of a queue's name.
        """
        self.queues += 1
        queue = f"queue-{self.queues}"
        rabbitmq.load(self.endpoint.port, queue, loaded)
        with Fleet() as fleet:
            consuming = [fleet.add(one) for one in work(queue)]
            for one in extra(queue):
                fleet.add(one)
            before_s = self.endpoint.usage().cpu_s
            start_ns = fleet.start()
            if not fleet.wait_for(consuming, count, END_S):
                raise FleetError(f"RabbitMQ did not deliver {count} messages in {END_S:.0f} s")
            results: list[clients.Received] = fleet.stop(consuming)
            used_s = self.endpoint.usage().cpu_s - before_s
        if missing := count - len({id_ for result in results for id_ in result.ids}):
            raise FleetError(f"RabbitMQ did not deliver {missing} of {count} messages")
        rabbitmq.delete(self.endpoint.port, queue)
        last_ns = max(result.last_ack_ns for result in results)
        return (last_ns - start_ns) / messages.NS_PER_S, used_s


def rivals(plan: Plan) -> list[Figure]:
    """Drains, a steady 500 a second and a worker's death, against RabbitMQ's quorum queues."""
    lab = plan.lab
    with ExitStack() as stack:
        stack.enter_context(lab.database(DATABASE))
        proxy = stack.enter_context(lab.proxy(Keyspace(DATABASE, (lab.server,))))
        broker = _Broker(stack.enter_context(rabbitmq.broker(lab.folder / "rabbitmq")))
        return [
            *_drains(plan, proxy, broker),
            *_steady(plan, proxy, broker),
            _death(plan, proxy, broker),
        ]


def _drains(plan: Plan, proxy: Endpoint, broker: _Broker) -> list[Figure]:
    figures = []
    for name, count, consumers, batch, goal in (
        ("drain, one consumer, acks of 100", plan.size(*BATCH_MESSAGES), 1, BATCH, None),
        (
            "drain, 16 consumers, an ack each, vt_ack = early",
            plan.size(*SINGLE_MESSAGES),
            SINGLE_WORKERS,
            1,
            Target(Goal.AT_LEAST, 20_000, of_ratio=False),
        ),
    ):
        settings = ",vt_ack=early" if batch == 1 else ""

        def ours(
            count: int = count,
            each: int = consumers,
            batch: int = batch,
            settings: str = settings,
        ) -> float:
            def work(table: str, each: int) -> Work:
                return clients.consumers(
                    proxy.port, DATABASE, table, count=each, ack_batch=batch
                )

            run = drain(
                plan.lab,
                proxy,
                work,
                workers=Workers(1, each),
                count=count,
                database=DATABASE,
                settings=settings,
            )
            plan.say(f"  streamfrom: {run.per_second:,.0f}/s {run.facts}")
            return run.per_second

        def theirs(count: int = count, each: int = consumers, batch: int = batch) -> float:
            def work(queue: str) -> list[Work]:
                return [
                    rabbitmq.consumers(
                        broker.endpoint.port,
                        queue,
                        count=each,
                        ack_batch=batch,
                        prefetch=PREFETCH,
                    )
                ]

            seconds, used_s = broker.run(count, count, work, lambda _: [])
            plan.say(f"  RabbitMQ: {count / seconds:,.0f}/s, {used_s:.2f} s of processor time")
            return count / seconds

        mine, others = plan.interleaved(ours, theirs)
        figures.append(Figure(name, "msg/s", Series.of(mine), AGAINST, Series.of(others), goal))
    return figures


def _steady(plan: Plan, proxy: Endpoint, broker: _Broker) -> list[Figure]:
    seconds = plan.size(*STEADY_S)
    count = STEADY_PER_SECOND * seconds

    def ours() -> float:
        with messages.fresh_table(plan.lab, proxy, DATABASE) as table:
            run = steady(
                plan.lab,
                proxy,
                DATABASE,
                table,
                clients.producer(
                    proxy.port, DATABASE, table, per_second=STEADY_PER_SECOND, seconds=seconds
                ),
                [
                    clients.consumers(
                        proxy.port, DATABASE, table, count=1, ack_batch=1, stream_first=True
                    )
                ],
                seconds=seconds,
            )
        plan.say(f"  streamfrom: {run.facts}")
        return float((run.facts["cpu_s_proxy"] + run.facts["cpu_s_server"]) / count * 1e3)

    def theirs() -> float:
        port = broker.endpoint.port
        _, used_s = broker.run(
            count,
            0,
            lambda queue: [
                rabbitmq.consumers(port, queue, count=1, ack_batch=1, prefetch=PREFETCH)
            ],
            lambda queue: [
                rabbitmq.producer(port, queue, per_second=STEADY_PER_SECOND, seconds=seconds)
            ],
        )
        plan.say(f"  RabbitMQ: {used_s:.2f} s of processor time")
        return used_s / count * 1e3

    mine, others = plan.interleaved(ours, theirs)
    return [
        Figure(
            "500 a second, one by one: processor time of proxy and server for a message",
            "ms",
            Series.of(mine),
            AGAINST,
            Series.of(others),
            Target(Goal.AT_MOST, 0.6, of_ratio=False),
        )
    ]


def _death(plan: Plan, proxy: Endpoint, broker: _Broker) -> Figure:
    kinds: list[tuple[float, int | None]] = [
        (MORTAL_WORK_S, None),
        (MORTAL_WORK_S, MORTAL_TAKES),
    ]

    def ours() -> float:
        seconds, _ = shared(plan, proxy, DATABASE, MORTAL_MESSAGES, kinds)
        return seconds

    def theirs() -> float:
        port = broker.endpoint.port
        seconds, _ = broker.run(
            MORTAL_MESSAGES,
            MORTAL_MESSAGES,
            lambda queue: [rabbitmq.worker(port, queue, *kind, PREFETCH) for kind in kinds],
            lambda _: [],
        )
        plan.say(f"  RabbitMQ: {seconds:.2f} s")
        return seconds

    mine, others = plan.interleaved(ours, theirs)
    return Figure(
        "a worker dies with what it holds: all 1,000 done after",
        "s",
        Series.of(mine),
        AGAINST,
        Series.of(others),
        Target(Goal.AT_MOST, 8, of_ratio=False),
    )
