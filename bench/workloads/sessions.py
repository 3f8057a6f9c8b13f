"""What ten thousand clients that are connected and do nothing cost the proxy."""

import asyncio

from bench.clients import open_many
from bench.connection import Connection
from bench.fleet import Fleet, Signals, Work
from bench.plan import Plan
from bench.report import Figure, figure, value_at_most


DATABASE = "sessions"
SESSIONS = (10_000, 2_000)
AT_ONCE = 100
MEGABYTES_MAX = 1_000


def idle_sessions(plan: Plan) -> list[Figure]:
    """The proxy's memory with all of them logged in, each having run a statement."""
    lab = plan.lab
    count = plan.size(*SESSIONS)
    with lab.keyspace(DATABASE) as proxy:
        before_mb = proxy.usage().rss_bytes / 1e6
        with Fleet() as fleet:
            worker = fleet.add(_sessions(proxy.port, count))
            fleet.start()
            (answered,) = fleet.stop([worker])
            used_mb = proxy.usage().rss_bytes_max / 1e6
    each_kb = (used_mb - before_mb) * 1e3 / count
    plan.say(f"  {before_mb:.0f} MB before, {used_mb:.0f} MB with {answered:,} sessions")
    return [
        figure(
            f"proxy memory, {count:,} idle sessions",
            "MB",
            [used_mb],
            target=value_at_most(MEGABYTES_MAX),
            before_mb=before_mb,
            sessions=answered,
        ),
        figure("proxy memory for one more session", "KB", [each_kb]),
    ]


def _sessions(port: int, count: int) -> Work:
    async def work(signals: Signals) -> int:
        pool = await open_many(port, DATABASE, count)
        for first in range(0, count, AT_ONCE):
            await asyncio.gather(*map(_ask, pool[first : first + AT_ONCE]))
        await signals.start()
        # All are still there, and served: the figure is of sessions, not of dead sockets.
        await asyncio.gather(*map(_ask, pool[:: max(1, count // AT_ONCE)]))
        for connection in pool:
            connection.close()
        return len(pool)

    return work


async def _ask(connection: Connection) -> None:
    await connection.query("SELECT 1")
