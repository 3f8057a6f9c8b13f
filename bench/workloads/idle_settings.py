"""What a queue's settings cost that never bite: the drain with each of them, in pairs with the plain drain.

The figure is the proxy's processor time for a message, which other load on the machine disturbs less than a rate.
"""

from typing import Final, NamedTuple

from bench.clients import consumers
from bench.fleet import Work
from bench.lab import Keyspace
from bench.plan import Plan
from bench.report import Figure, Goal, Series, Target
from bench.workloads.drain import DATABASE, Drained, Workers, drain


MESSAGES: Final = (40_000, 10_000)
ACK_BATCH: Final = 100
WORKERS: Final = Workers(1, 1)
WRITTEN: Final = ",vt_lease=written"
# Plain drains in pairs differ by less on a quiet machine, so what is above shows.
SHOWS: Final = 1.05


class Setting(NamedTuple):
    """A setting that never bites, and what the table beside it has, as keys of their comments."""

    key: str
    beside: str = ""


# A limit of what is in flight has each lease written, which costs what it costs without a limit.
SETTINGS: Final = (
    Setting(""),
    Setting(",vt_max_rate=1000000000"),
    Setting(",vt_max_attempts=1000000"),
    Setting(",vt_delayed=off"),
    Setting(",vt_auto_id=on"),
    Setting(",vt_max_in_flight=100000000", WRITTEN),
)


def settings(plan: Plan) -> list[Figure]:
    """Drain with acknowledgements in batches of 100, with a setting and without."""
    lab, count = plan.lab, plan.size(*MESSAGES)
    figures = []
    with (
        lab.database(DATABASE),
        lab.proxy(Keyspace(DATABASE, (lab.server,))) as proxy,
    ):

        def run(keys: str) -> Drained:
            def work(table: str, each: int) -> Work:
                return consumers(proxy.port, DATABASE, table, count=each, ack_batch=ACK_BATCH)

            return drain(lab, proxy, work, workers=WORKERS, count=count, settings=keys)

        run("")  # the first drain of a process is slower than all others
        for key, beside in SETTINGS:
            ours, theirs = plan.interleaved(
                lambda key=key: run(key),  # type: ignore[misc]
                lambda beside=beside: run(beside),  # type: ignore[misc]
            )
            name = key.lstrip(",") or "no setting"
            figures.append(
                Figure(
                    f"drain, {name}, processor time of the proxy for a message",
                    "µs",
                    Series.of(each.facts["cpu_s_proxy"] / count * 1e6 for each in ours),
                    beside.lstrip(",") or "no setting",
                    Series.of(each.facts["cpu_s_proxy"] / count * 1e6 for each in theirs),
                    Target(Goal.AT_MOST, SHOWS),
                    {"messages": count},
                )
            )
            plan.say(f"  {name}: {ours[-1].facts} beside {theirs[-1].facts}")
    return figures
