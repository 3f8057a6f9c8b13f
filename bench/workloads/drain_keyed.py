"""A keyed queue compared with a plain one: 1,000 keys, one of which has half of the messages."""

from typing import Final

from bench import messages
from bench.clients import Received, consumers
from bench.fleet import Fleet
from bench.plan import Plan
from bench.report import Figure, figure, ratio_at_least


DATABASE: Final = "keyed"
MESSAGES: Final = (20_000, 4_000)
WORKERS: Final = 16
DRAIN_S: Final = 180.0
KEYED: Final = "key = tenant, max_per_key = 1, "
RATIO_MIN: Final = 0.5


def drain_keyed(plan: Plan) -> list[Figure]:
    """Drain with an ack per message, 16 consumers: each key one by one, and without keys."""
    lab, count = plan.lab, plan.size(*MESSAGES)
    with lab.keyspace(DATABASE) as proxy:

        def run(settings: str) -> tuple[float, dict[str, float]]:
            meter = lab.meter(proxy=proxy, server=lab.direct)
            table = messages.tenant_queue(
                lab,
                proxy,
                DATABASE,
                f"{settings}ack_wait = 600, batch_size = 100",
                messages.ONE_HAS_HALF,
                count,
            )
            lab.settle()
            with Fleet() as fleet:
                work = consumers(proxy.port, DATABASE, table, count=WORKERS, ack_batch=1)
                worker = fleet.add(work)
                meter.start()
                start_ns = fleet.start()
                fleet.reach([worker], count, DRAIN_S)
                facts = meter.stop()
                received: Received = fleet.stop([worker])[0]
            messages.audited(lab, DATABASE, table, range(1, count + 1), received.ids)
            proxy.execute(f"DROP QUEUE {table}", DATABASE)
            elapsed_s = (received.last_ack_ns - start_ns) / 1e9
            plan.say(f"  {settings or 'without keys, '}{count / elapsed_s:,.0f}/s {facts}")
            return count / elapsed_s, facts

        keyed, plain = plan.interleaved(lambda: run(KEYED), lambda: run(""))
    return [
        figure(
            f"drain, an ack per message, {messages.TENANTS:,} keys one by one, one with half of the messages",
            "msg/s",
            (rate for rate, _ in keyed),
            "the same without keys",
            (rate for rate, _ in plain),
            ratio_at_least(RATIO_MIN),
            messages=count,
            our_runs=[facts for _, facts in keyed],
            their_runs=[facts for _, facts in plain],
        )
    ]
