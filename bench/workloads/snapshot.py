"""An old snapshot held open, which stops InnoDB's purge and with it every queue that polls."""

import contextlib
from collections.abc import Callable

import pymysql

from bench import messages
from bench.clients import consumers, producer
from bench.fleet import Work
from bench.lab import Endpoint
from bench.opponents import poller
from bench.plan import Plan
from bench.processes import HOST
from bench.report import Figure, figure, ratio_at_least
from bench.steady import Steady, steady


DATABASE = "snapshot"
PER_SECOND = 2_000
ROWS_PER_INSERT = 10  # so that the producer takes little of the two cores
SECONDS = (60, 15)
CONSUMERS = 2
LOOP_BATCH = 20
TARGET = ratio_at_least(0.98)


def snapshot(plan: Plan) -> list[Figure]:
    """Produce and drain 2,000 messages a second, with and without the snapshot."""
    lab = plan.lab
    with lab.keyspace(DATABASE) as proxy:

        def streaming(table: str) -> Work:
            return consumers(
                *(proxy.port, DATABASE, table),
                count=CONSUMERS,
                ack_batch=100,
                stream_first=True,
            )

        def polling(table: str) -> Work:
            return poller(lab.server.port, DATABASE, table, workers=CONSUMERS, batch=LOOP_BATCH)

        held, free = plan.interleaved(
            lambda: _run(plan, "streamfrom, snapshot", proxy, streaming, held=True),
            lambda: _run(plan, "streamfrom", proxy, streaming, held=False),
        )
        loop = _run(plan, "the loop, snapshot", lab.direct, polling, held=True)
    ours = [run.delivered_per_second for run in held]
    return [
        figure(
            "2,000 msg/s, old snapshot open",
            "msg/s",
            ours,
            "the same without it",
            (run.delivered_per_second for run in free),
            TARGET,
            held_runs=[run.facts for run in held],
            free_runs=[run.facts for run in free],
            loop_run=loop.facts,
        ),
        figure(
            "2,000 msg/s, old snapshot open",
            "msg/s",
            ours,
            f"SKIP LOCKED loop, batch {LOOP_BATCH}, same snapshot",
            [loop.delivered_per_second],
        ),
    ]


def _run(
    plan: Plan,
    name: str,
    target: Endpoint,
    consumer: Callable[[str], Work],
    *,
    held: bool,
) -> Steady:
    lab = plan.lab
    seconds = plan.size(*SECONDS)
    with contextlib.ExitStack() as stack:
        table = stack.enter_context(messages.fresh_table(lab, target, DATABASE))
        snapshot = stack.enter_context(
            pymysql.connect(host=HOST, port=lab.server.port, user="root")
        )
        if held:
            snapshot.cursor().execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        run = steady(
            lab,
            target,
            DATABASE,
            table,
            producer(
                *(target.port, DATABASE, table),
                per_second=PER_SECOND,
                seconds=seconds,
                rows=ROWS_PER_INSERT,
            ),
            [consumer(table)],
            seconds=seconds,
            # What has piled up by then is drained without it, or the audit would take for ever.
            after_window=snapshot.rollback,
        )
    plan.say(f"  {name}: {run.delivered_per_second:,.0f}/s {run.facts}")
    return run
