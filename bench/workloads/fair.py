"""How long the messages of a small tenant wait next to another's flood when keys take turns."""

import time
from typing import Final

from bench import messages
from bench.clients import Received, Sent, consumers, producer
from bench.fleet import Fleet
from bench.plan import Plan
from bench.report import Figure, figure, value_at_most


DATABASE = "fair"
FLOOD: Final = (1_000_000, 300_000)
SECONDS: Final = (6, 3)
# The number of messages that the small tenant sends every 300 ms.
OF_THE_SMALL: Final = 10
PER_SECOND: Final = 33
REST_S: Final = 1.0
END_S: Final = 120.0


def fair(plan: Plan) -> list[Figure]:
    """Send ten messages of a small tenant every 300 ms while a consumer drains a flood: from COMMIT to the last of the ten."""
    lab, flood, seconds = plan.lab, plan.size(*FLOOD), plan.size(*SECONDS)
    waits: list[list[float]] = []
    with lab.keyspace(DATABASE) as proxy:
        for _ in range(plan.pairs):
            settings = "key = tenant, fair = on, "
            with (
                messages.tenant_queue(lab, proxy, DATABASE, settings, "1", flood) as table,
                Fleet() as fleet,
            ):
                where = proxy.port, DATABASE, table
                reader = fleet.add(consumers(*where, count=1, ack_batch=10, hint=""))
                rows, first = OF_THE_SMALL, flood + 1
                small = producer(
                    *where, per_second=PER_SECOND, seconds=seconds, rows=rows, first_id=first
                )
                source = fleet.add(small)
                fleet.start()
                sent: Sent = source.result(END_S)
                time.sleep(REST_S)
                received: Received = fleet.stop([reader])[0]
                messages.audited(lab, DATABASE, table, sent.ids, received.ids, flood)
            arrived_ns = dict(zip(received.ids, received.arrived_ns, strict=True))
            wait_ms = [
                (arrived_ns[id_] - committed) / 1e6
                for id_, committed in zip(sent.ids, sent.committed_ns, strict=True)
            ]
            rounds = range(0, len(wait_ms), OF_THE_SMALL)
            waits.append(sorted(max(wait_ms[at : at + OF_THE_SMALL]) for at in rounds))
            told = [round(one, 1) for one in waits[-1]]
            plan.say(f"  {told} ms, {len(received.ids):,} in all")
    name, most = (
        f"ten messages next to a flood of {flood:,}: the longest wait",
        value_at_most(50),
    )
    return [
        figure(name, "ms", (each[-1] for each in waits), target=most),
        figure("… the middle one", "ms", (each[len(each) // 2] for each in waits)),
    ]
