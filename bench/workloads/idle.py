"""The load of fifty idle consumers on the server, and the cost of a poll each second."""

import contextlib
import time
from typing import Final

from bench import messages
from bench.clients import consumers
from bench.fleet import Fleet, Work
from bench.lab import Endpoint, Keyspace, Lab, await_members
from bench.opponents import POLL_S, loops
from bench.plan import Plan
from bench.report import Figure, figure, ratio_at_most, value_at_most


DATABASE = "idle"
CONSUMERS = 50
SIZES: Final = {"idle, 50 consumers": 1, "idle, 50 consumers, a fleet of three": 3}
# Longer than the proxy's 30 s between polls, so that a measurement includes one.
OUR_SECONDS = (60, 31)
THEIR_SECONDS = 5
CONNECT_S = 1.0

# The capacity of a queue's cache.
CACHED = 10_000
POLLED_CONSUMERS = 16


def idle(plan: Plan) -> list[Figure]:
    """Compare the statements per second of one proxy and of a fleet of three with fifty workers that poll every 100 ms."""
    lab, seconds = plan.lab, plan.size(*OUR_SECONDS)
    keyspace = Keyspace(DATABASE, (lab.server,))
    ours: dict[str, dict[str, float]] = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(lab.database(DATABASE))
        proxies: list[Endpoint] = []
        for name, size in SIZES.items():
            while len(proxies) < size:
                proxies.append(stack.enter_context(lab.proxy(keyspace)))
            for proxy in proxies:
                await_members(proxy, "is_answering", size)
            with messages.fresh_table(lab, proxies[0], DATABASE) as table:
                each = -(-CONSUMERS // size)
                work = [_streaming(proxy, table, each) for proxy in proxies]
                ours[name] = _a_second(lab, work, seconds)
            plan.say(f"  {name}, a second: {ours[name]}")
        with messages.fresh_table(lab, lab.direct, DATABASE) as table:
            polling = loops(lab.direct.port, DATABASE, table, workers=CONSUMERS, poll=True)
            theirs = _a_second(lab, [polling], THEIR_SECONDS)
            plan.say(f"  pollers, a second: {theirs}")
    against, polled = f"50 pollers, every {POLL_S * 1000:.0f} ms", [theirs["statements"]]
    most = ratio_at_most(1 / 500)
    return [
        figure(f"{name}, statements", "/s", [used["statements"]], against, polled, most)
        for name, used in ours.items()
    ]


def polling(plan: Plan) -> list[Figure]:
    """Compare the processor time of a poll each second with no poll, with a full cache, while nothing is due."""
    lab, seconds = plan.lab, plan.size(*OUR_SECONDS)
    with lab.keyspace(DATABASE) as proxy:
        table = lab.fresh_name()
        columns = "(id BIGINT, message VARCHAR(100))"
        proxy.execute(f"CREATE QUEUE {table} {columns} WITH (cache_size = {CACHED})", DATABASE)
        later_ns = time.time_ns() + 3600 * messages.NS_PER_S
        values = f"n, {later_ns} + 1000000 * n, REPEAT('x', 100)"
        messages.fill(lab, DATABASE, table, "id, time_next, message", values, CACHED)
        used = {}
        for interval_s in (1, 3600):
            alter = f"ALTER QUEUE {table} SET (poller_interval = {interval_s})"
            proxy.execute(alter, DATABASE)
            work = [_streaming(proxy, table, POLLED_CONSUMERS)]
            used[interval_s] = _a_second(lab, work, seconds, proxy=proxy)
            plan.say(f"  a poll every {interval_s} s, a second: {used[interval_s]}")
    figures = []
    for side in ("proxy", "server"):
        percent = 100 * (used[1][f"cpu_s_{side}"] - used[3600][f"cpu_s_{side}"])
        name, most = f"polls each second, {CACHED:,} keys cached, the {side}", value_at_most(1)
        figures.append(figure(name, "% of a core", [percent], target=most))
    return figures


def _streaming(proxy: Endpoint, table: str, count: int) -> Work:
    return consumers(proxy.port, DATABASE, table, count=count, ack_batch=1, stream_first=True)


def _a_second(
    lab: Lab, work: list[Work], seconds: float, **processes: Endpoint
) -> dict[str, float]:
    """Return the server's statements and work per second during *work*, and the usage of *processes*."""
    meter = lab.meter(**processes)
    with Fleet() as fleet:
        workers = [fleet.add(one) for one in work]
        fleet.start()
        time.sleep(CONNECT_S)
        meter.start()
        time.sleep(seconds)
        used = meter.stop()
        fleet.stop(workers)
    return {name: value / seconds for name, value in used.items()}
