"""Latency from COMMIT to the consumer at 1,000 messages/s, with many streams, across members; the cost of a lone message."""

from bench import messages
from bench.clients import consumers, producer
from bench.lab import Endpoint
from bench.opponents import loops
from bench.plan import Plan
from bench.report import (
    Figure,
    figure,
    percentile,
    percentile_figures,
    ratio_at_most,
    value_at_most,
)
from bench.steady import Steady, steady


DATABASE = "latency"
PER_SECOND = 1_000
# At 1,000/s, two proxies, the server and the clients need more than two cores.
PER_SECOND_ACROSS = 200
SECONDS = (12, 6)
CONSUMERS = 4
STREAMS = (1, 10, 100, 1000)
ACK_CONNECTIONS = 4
LONE_PER_SECOND = 500
LONE_MS_MAX = 0.6
# Across members, the latency may be at most half as much again.
ACROSS_MAX = 1.5


def latency(plan: Plan) -> list[Figure]:
    """Measure COMMIT → row at the consumer, against a 100 ms poller."""
    lab = plan.lab
    seconds = plan.size(*SECONDS)
    with lab.keyspace(DATABASE) as proxy:

        def ours() -> list[float]:
            return _streamed(plan, "streamfrom", proxy, proxy).from_commit_ms

        def theirs() -> list[float]:
            with messages.fresh_table(lab, lab.direct, DATABASE) as table:
                where = lab.server.port, DATABASE, table
                source = producer(*where, per_second=PER_SECOND, seconds=seconds)
                readers = [loops(*where, workers=1, poll=True)]
                run = steady(lab, lab.direct, DATABASE, table, source, readers, seconds=seconds)
            plan.say(f"  100 ms poller: {run.facts}")
            return run.from_commit_ms

        our_runs, their_runs = plan.interleaved(ours, theirs)
    name, goals = (
        "commit → row, 1,000 msg/s",
        ((50, None), (99, ratio_at_most(1 / 40)), (99.9, None)),
    )
    return percentile_figures(name, our_runs, "100 ms poller", their_runs, *goals)


def streams(plan: Plan) -> list[Figure]:
    """Measure what one more open stream costs: latency and memory."""
    figures = []
    first: list[float] = []
    grown_kb: list[float] = []
    for count in STREAMS:
        with plan.lab.keyspace(DATABASE) as proxy:
            before_bytes = proxy.usage().rss_bytes
            run = _streamed(plan, f"{count} streams", proxy, proxy, streams=count)
            grown_kb.append((proxy.usage().rss_bytes_max - before_bytes) / 1024)
        p99 = [percentile(run.from_commit_ms, 99)]
        first = first or p99
        name = f"open streams: {count:,}, commit → row p99"
        figures.append(figure(name, "ms", p99, "one stream", first))
    # The memory that the first stream loads and allocates is no part of the cost of one more.
    each_kb = (grown_kb[-1] - grown_kb[0]) / (STREAMS[-1] - STREAMS[0])
    figures.append(figure("proxy memory for one more stream", "KB", [each_kb]))
    return figures


def members(plan: Plan) -> list[Figure]:
    """Measure COMMIT → row in a fleet of two: producer, dispatcher and consumers on one member, and on different ones."""
    with plan.lab.fleet_of_two(DATABASE) as (dispatcher, other):
        placements = {
            "one member": (dispatcher, dispatcher),
            "INSERT at the dispatcher, STREAM at another member": (dispatcher, other),
            "INSERT and STREAM at another member than the dispatcher": (other, other),
        }
        runs: dict[str, list[list[float]]] = {name: [] for name in placements}
        for _ in range(plan.pairs):
            for name, (inserts, streaming) in placements.items():
                run = _streamed(plan, name, inserts, streaming, per_second=PER_SECOND_ACROSS)
                runs[name].append(run.from_commit_ms)
    within, *across = runs
    goals = ((50, None), (99, ratio_at_most(ACROSS_MAX)))
    return [
        each
        for name in across
        for each in percentile_figures(name, runs[name], within, runs[within], *goals)
    ]


def lone(plan: Plan) -> list[Figure]:
    """Measure the proxy's and the server's processor time from INSERT to ack of a lone message: 500/s, one stream, an ack each."""
    rate = LONE_PER_SECOND
    with plan.lab.keyspace(DATABASE) as proxy:
        runs = [
            _streamed(plan, "lone", proxy, proxy, streams=1, per_second=rate, ack_batch=1).facts
            for _ in range(plan.pairs)
        ]
    costs_ms = [(run["cpu_s_proxy"] + run["cpu_s_server"]) * 1000 / run["sent"] for run in runs]
    name = f"a lone message, {rate}/s, an ack each: processor time, proxy and server"
    return [figure(name, "ms", costs_ms, target=value_at_most(LONE_MS_MAX))]


def _streamed(
    plan: Plan,
    name: str,
    inserts: Endpoint,
    streaming: Endpoint,
    *,
    streams: int = CONSUMERS,
    per_second: int = PER_SECOND,
    ack_batch: int = 100,
) -> Steady:
    """Send through one proxy and receive over *streams* streams of another, on a fresh table."""
    lab, seconds = plan.lab, plan.size(*SECONDS)
    with messages.fresh_table(lab, inserts, DATABASE) as table:
        reader = consumers(
            *(streaming.port, DATABASE, table),
            count=streams,
            ack_batch=ack_batch,
            ack_connections=ACK_CONNECTIONS,
            stream_first=True,
        )
        where = inserts.port, DATABASE, table
        source = producer(*where, per_second=per_second, seconds=seconds)
        run = steady(lab, streaming, DATABASE, table, source, [reader], seconds=seconds)
    plan.say(f"  {name}: {run.facts}")
    return run
