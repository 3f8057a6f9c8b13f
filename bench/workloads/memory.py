"""The proxy's memory while a large table waits and a large backlog is drained, and with ten thousand idle clients."""

import asyncio
from contextlib import nullcontext

from bench import messages
from bench.clients import consumers, open_many
from bench.connection import Connection
from bench.fleet import Fleet, Signals, Work
from bench.plan import Plan
from bench.report import Figure, figure, value_at_most
from bench.workloads.drain import drain
from bench.workloads.lateness import park


DATABASE = "memory"
PARKED = (1_000_000, 100_000)
DUE = (100_000, 20_000)
TEXT_BYTES = 1_000  # makes a body of about 1 KiB
MEGABYTES_MAX = 200
SESSIONS = (10_000, 2_000)
SESSIONS_MEGABYTES_MAX = 1_000
AT_ONCE = 100


def memory(plan: Plan) -> list[Figure]:
    """Measure the peak RSS while one consumer connects and drains."""
    lab = plan.lab
    parked, due = plan.size(*PARKED), plan.size(*DUE)
    with lab.keyspace(DATABASE) as proxy, messages.fresh_table(lab, proxy, DATABASE) as table:
        plan.say(f"  parking {parked:,} messages, and {due:,} of 1 KiB that are due")
        park(lab, DATABASE, table, parked)
        values = f"n, CONCAT('{{\"text\": \"', REPEAT('x', {TEXT_BYTES}), '\"}}')"
        messages.fill(lab, DATABASE, table, "id, message", values, due)
        before_mb = proxy.usage().rss_bytes / 1e6
        members = [consumers(proxy.port, DATABASE, table, count=1, ack_batch=100)]
        run = drain(lab, proxy, nullcontext(table), lambda _: members, due, DATABASE)
        most_mb = proxy.usage().rss_bytes_max / 1e6
    plan.say(f"  {before_mb:.0f} MB before, {most_mb:.0f} MB at most, {run.per_second:,.0f}/s")
    name = f"proxy memory, {parked:,} parked, {due:,} of 1 KiB drained"
    return [figure(name, "MB", [most_mb], target=value_at_most(MEGABYTES_MAX))]


def idle_sessions(plan: Plan) -> list[Figure]:
    """Measure the proxy's memory with ten thousand logged-in clients, each of which has run a statement."""
    count = plan.size(*SESSIONS)
    with plan.lab.keyspace(DATABASE) as proxy:
        before_mb = proxy.usage().rss_bytes / 1e6
        with Fleet() as fleet:
            worker = fleet.add(_sessions(proxy.port, count))
            fleet.start()
            fleet.stop([worker])
            used_mb = proxy.usage().rss_bytes_max / 1e6
    plan.say(f"  {before_mb:.0f} MB before, {used_mb:.0f} MB with {count:,} sessions")
    most, each_kb = value_at_most(SESSIONS_MEGABYTES_MAX), (used_mb - before_mb) * 1e3 / count
    return [
        figure(f"proxy memory, {count:,} idle sessions", "MB", [used_mb], target=most),
        figure("proxy memory for one more session", "KB", [each_kb]),
    ]


def _sessions(port: int, count: int) -> Work:
    async def work(signals: Signals) -> None:
        pool = await open_many(port, DATABASE, count)
        for first in range(0, count, AT_ONCE):
            await asyncio.gather(*map(_ask, pool[first : first + AT_ONCE]))
        await signals.start()
        # Check that all are still connected and served, so that the figure counts sessions, not dead sockets.
        await asyncio.gather(*map(_ask, pool[:: max(1, count // AT_ONCE)]))
        for connection in pool:
            connection.close()

    return work


async def _ask(connection: Connection) -> None:
    await connection.query("SELECT 1")
