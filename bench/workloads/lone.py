"""What a message costs that comes alone: 500 a second, one stream, and an ack for each by its own statement."""

from bench import messages
from bench.clients import consumers, producer
from bench.plan import Plan
from bench.report import Figure, figure, value_at_most
from bench.steady import steady


DATABASE = "lone"
PER_SECOND = 500
SECONDS = (12, 6)
TOGETHER_MS_MAX = 0.6


def lone(plan: Plan) -> list[Figure]:
    """Processor time of the proxy and of the server for a message, from INSERT to ack."""
    lab = plan.lab
    seconds = plan.size(*SECONDS)
    costs: dict[str, list[float]] = {"proxy": [], "server": []}
    statements: list[float] = []
    with lab.keyspace(DATABASE) as proxy:
        for _ in range(plan.pairs):
            with messages.fresh_table(lab, proxy, DATABASE) as table:
                where = proxy.port, DATABASE, table
                source = producer(*where, per_second=PER_SECOND, seconds=seconds)
                reader = consumers(*where, count=1, ack_batch=1, stream_first=True)
                run = steady(lab, proxy, DATABASE, table, source, [reader], seconds=seconds)
            plan.say(f"  {run.facts}")
            for name, values in costs.items():
                values.append(run.facts[f"cpu_s_{name}"] * 1000 / run.facts["sent"])
            statements.append(run.facts["statements"] / run.facts["sent"])
    together = [sum(pair) for pair in zip(*costs.values(), strict=True)]
    what = "a lone message, 500/s, an ack each"
    return [
        figure(
            f"{what}: processor time, proxy and server",
            "ms",
            together,
            target=value_at_most(TOGETHER_MS_MAX),
        ),
        *(figure(f"… of the {name}", "ms", values) for name, values in costs.items()),
        figure("… statements at the server", "/msg", statements),
    ]
