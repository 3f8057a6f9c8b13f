"""An old snapshot held open, which stops InnoDB's purge and with it every queue that polls."""

import pymysql

from bench import messages
from bench.clients import consumers, producer
from bench.lab import Endpoint
from bench.plan import Plan
from bench.processes import HOST
from bench.report import Figure, figure, ratio_at_least
from bench.steady import Steady, steady


DATABASE = "snapshot"
PER_SECOND = 2_000
ROWS_PER_INSERT = 10  # so that the producer uses little of the two cores
SECONDS = (60, 15)
CONSUMERS = 2


def snapshot(plan: Plan) -> list[Figure]:
    """Produce and drain 2,000 messages a second, with and without the snapshot."""
    with plan.lab.keyspace(DATABASE) as proxy:
        held, free = plan.interleaved(
            lambda: _run(plan, proxy, held=True), lambda: _run(plan, proxy, held=False)
        )
    ours, theirs = ([run.delivered_per_second for run in runs] for runs in (held, free))
    names = "2,000 msg/s, old snapshot open", "the same without it"
    return [figure(names[0], "msg/s", ours, names[1], theirs, ratio_at_least(0.98))]


def _run(plan: Plan, proxy: Endpoint, *, held: bool) -> Steady:
    lab, seconds = plan.lab, plan.size(*SECONDS)
    with (
        messages.fresh_table(lab, proxy, DATABASE) as table,
        pymysql.connect(host=HOST, port=lab.server.port, user="root") as snapshot,
    ):
        if held:
            snapshot.cursor().execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        where = proxy.port, DATABASE, table
        source = producer(*where, per_second=PER_SECOND, seconds=seconds, rows=ROWS_PER_INSERT)
        readers = [consumers(*where, count=CONSUMERS, ack_batch=100, stream_first=True)]
        # The backlog at its end is drained without the snapshot, or the audit would take forever.
        ends = {"seconds": seconds, "after_window": snapshot.rollback}
        run = steady(lab, proxy, DATABASE, table, source, readers, **ends)
    plan.say(f"  {'held' if held else 'free'}: {run.delivered_per_second:,.0f}/s {run.facts}")
    return run
