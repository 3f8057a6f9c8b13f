"""The proxy's memory while a large table waits and a large backlog is drained."""

import time

from bench import messages
from bench.clients import Received, consumers
from bench.fleet import Fleet
from bench.plan import Plan
from bench.report import Figure, figure, value_at_most
from bench.workloads.lateness import park


DATABASE = "memory"
PARKED = (1_000_000, 100_000)
DUE = (100_000, 20_000)
TEXT_BYTES = 1_000  # which makes a body of about 1 KiB
DRAIN_S = 120.0
MEGABYTES_MAX = 200


def memory(plan: Plan) -> list[Figure]:
    """RSS at its highest while one consumer connects and drains."""
    lab = plan.lab
    parked, due = plan.size(*PARKED), plan.size(*DUE)
    with (
        lab.keyspace(DATABASE) as proxy,
        messages.fresh_table(lab, proxy, DATABASE) as table,
    ):
        plan.say(f"  parking {parked:,} messages, and {due:,} of 1 KiB that are due")
        park(lab, DATABASE, table, parked)
        messages.fill(
            lab.server,
            lab,
            DATABASE,
            table,
            "id, message",
            f"n, CONCAT('{{\"text\": \"', REPEAT('x', {TEXT_BYTES}), '\"}}')",
            due,
        )
        before_mb = proxy.usage().rss_bytes / 1e6
        start = time.perf_counter()
        with Fleet() as fleet:
            reader = fleet.add(consumers(proxy.port, DATABASE, table, count=1, ack_batch=100))
            fleet.start()
            result: Received = fleet.finish([reader], due, DRAIN_S)[0]
        elapsed_s = time.perf_counter() - start
        most_mb = proxy.usage().rss_bytes_max / 1e6
        messages.audited(lab, DATABASE, table, range(1, due + 1), result.ids)
    plan.say(f"  {before_mb:.0f} MB before, {most_mb:.0f} MB at most, {due / elapsed_s:,.0f}/s")
    return [
        figure(
            f"proxy memory, {parked:,} parked, {due:,} of 1 KiB drained",
            "MB",
            [most_mb],
            target=value_at_most(MEGABYTES_MAX),
            before_mb=before_mb,
            drain_per_second=due / elapsed_s,
        )
    ]
