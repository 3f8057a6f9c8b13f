"""What fifty consumers ask of the server while there is nothing to do."""

import time

from bench import messages
from bench.clients import consumers
from bench.fleet import Fleet, Work
from bench.lab import Endpoint, Keyspace
from bench.opponents import POLL_S, poller
from bench.plan import Plan
from bench.report import Figure, Goal, Series, Target


DATABASE = "idle"
CONSUMERS = 50
# Longer than the proxy's 30 s between polls, or it might be measured between two of them.
OUR_SECONDS = (60, 31)
THEIR_SECONDS = 5
CONNECT_S = 1.0


def idle(plan: Plan) -> list[Figure]:
    """Statements a second, against fifty workers that poll every 100 ms."""
    lab = plan.lab
    with (
        lab.database(DATABASE),
        lab.proxy(Keyspace(DATABASE, (lab.server,))) as proxy,
    ):

        def statements(target: Endpoint, work: Work, seconds: float) -> dict[str, float]:
            processes = {} if target == lab.direct else {"proxy": target}
            meter = lab.meter(**processes)
            with Fleet() as fleet:
                worker = fleet.add(work)
                fleet.start()
                time.sleep(CONNECT_S)
                meter.start()
                time.sleep(seconds)
                used = meter.stop()
                fleet.stop([worker])
            return {name: value / seconds for name, value in used.items()}

        with messages.fresh_table(lab, proxy, DATABASE) as table:
            streaming = consumers(
                proxy.port,
                DATABASE,
                table,
                count=CONSUMERS,
                ack_batch=1,
                stream_first=True,
            )
            ours = statements(proxy, streaming, plan.size(*OUR_SECONDS))
            plan.say(f"  streamfrom, a second: {ours}")
        with messages.fresh_table(lab, lab.direct, DATABASE) as table:
            polling = poller(lab.server.port, DATABASE, table, workers=CONSUMERS)
            theirs = statements(lab.direct, polling, THEIR_SECONDS)
            plan.say(f"  pollers, a second: {theirs}")
    return [
        Figure(
            "idle, 50 consumers, statements",
            "/s",
            Series.of([ours["statements"]]),
            f"50 pollers, every {POLL_S * 1000:.0f} ms",
            Series.of([theirs["statements"]]),
            Target(Goal.AT_MOST, 1 / 100),
            {"ours_per_second": ours, "theirs_per_second": theirs},
        )
    ]
