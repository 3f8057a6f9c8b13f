"""What fifty consumers ask of the server while there is nothing to do."""

import contextlib
import time
from typing import Final

from bench import messages
from bench.clients import consumers
from bench.fleet import Fleet, Work
from bench.lab import Endpoint, Keyspace, Lab, await_members
from bench.opponents import POLL_S, poller
from bench.plan import Plan
from bench.report import Figure, figure, ratio_at_most


DATABASE = "idle"
CONSUMERS = 50
SIZES: Final = {"idle, 50 consumers": 1, "idle, 50 consumers, a fleet of three": 3}
# Longer than the proxy's 30 s between polls, or it might be measured between two of them.
OUR_SECONDS = (60, 31)
THEIR_SECONDS = 5
CONNECT_S = 1.0


def idle(plan: Plan) -> list[Figure]:
    """Statements a second, of one proxy and of a fleet of three, against fifty workers that poll every 100 ms."""
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
                ours[name] = _a_second(
                    lab,
                    [_streaming(proxy, table, -(-CONSUMERS // size)) for proxy in proxies],
                    seconds,
                )
            plan.say(f"  {name}, a second: {ours[name]}")
        with messages.fresh_table(lab, lab.direct, DATABASE) as table:
            polling = poller(lab.server.port, DATABASE, table, workers=CONSUMERS)
            theirs = _a_second(lab, [polling], THEIR_SECONDS)
            plan.say(f"  pollers, a second: {theirs}")
    return [
        figure(
            f"{name}, statements",
            "/s",
            [used["statements"]],
            f"50 pollers, every {POLL_S * 1000:.0f} ms",
            [theirs["statements"]],
            ratio_at_most(1 / 500),
            ours_per_second=used,
            theirs_per_second=theirs,
        )
        for name, used in ours.items()
    ]


def _streaming(proxy: Endpoint, table: str, count: int) -> Work:
    return consumers(proxy.port, DATABASE, table, count=count, ack_batch=1, stream_first=True)


def _a_second(lab: Lab, work: list[Work], seconds: float) -> dict[str, float]:
    """Return what the server was asked for and did in a second during *work*, none of which has anything to do."""
    meter = lab.meter()
    with Fleet() as fleet:
        workers = [fleet.add(one) for one in work]
        fleet.start()
        time.sleep(CONNECT_S)
        meter.start()
        time.sleep(seconds)
        used = meter.stop()
        fleet.stop(workers)
    return {name: value / seconds for name, value in used.items()}
