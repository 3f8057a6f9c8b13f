"""From COMMIT to the consumer, at 1,000 messages a second; with many streams, and across members of a fleet."""

from bench import messages
from bench.clients import consumers, producer
from bench.lab import Endpoint, Lab
from bench.opponents import poller
from bench.plan import Plan
from bench.report import Figure, figure, ratio_at_most
from bench.steady import Steady, steady


DATABASE = "latency"
PER_SECOND = 1_000
# With 1,000 a second two proxies, the server and the clients want more than two cores have.
PER_SECOND_ACROSS = 200
SECONDS = (12, 6)
CONSUMERS = 4
STREAMS = (1, 10, 100, 1000)
ACK_CONNECTIONS = 4
# Across members a message comes half as late again at most.
ACROSS_MAX = 1.5


def latency(plan: Plan) -> list[Figure]:
    """Commit → row at the consumer, against a 100 ms poller."""
    lab = plan.lab
    seconds = plan.size(*SECONDS)
    with lab.keyspace(DATABASE) as proxy:

        def ours() -> Steady:
            run = _streamed(lab, proxy, proxy, streams=CONSUMERS, seconds=seconds)
            plan.say(f"  streamfrom: {run.facts}")
            return run

        def theirs() -> Steady:
            with messages.fresh_table(lab, lab.direct, DATABASE) as table:
                where = lab.server.port, DATABASE, table
                source = producer(*where, per_second=PER_SECOND, seconds=seconds)
                readers = [poller(*where, workers=1)]
                run = steady(lab, lab.direct, DATABASE, table, source, readers, seconds=seconds)
            plan.say(f"  100 ms poller: {run.facts}")
            return run

        our_runs, their_runs = plan.interleaved(ours, theirs)

    return [
        *(
            figure(
                f"commit → row, 1,000 msg/s, p{percent}",
                "ms",
                (run.commit_ms(percent) for run in our_runs),
                "100 ms poller",
                (run.commit_ms(percent) for run in their_runs),
                target,
                our_runs=[run.facts for run in our_runs],
                their_runs=[run.facts for run in their_runs],
            )
            for percent, target in ((50, None), (99, ratio_at_most(1 / 40)), (99.9, None))
        ),
        figure(
            "schedule → row, insert included, p99",
            "ms",
            (run.schedule_ms(99) for run in our_runs),
            "100 ms poller",
            (run.schedule_ms(99) for run in their_runs),
        ),
    ]


def streams(plan: Plan) -> list[Figure]:
    """What one more open stream costs: latency and memory."""
    lab = plan.lab
    seconds = plan.size(*SECONDS)
    figures = []
    first: list[float] = []
    grown_kb: list[float] = []
    for count in STREAMS:
        with lab.keyspace(DATABASE) as proxy:
            before_bytes = proxy.usage().rss_bytes
            run = _streamed(lab, proxy, proxy, streams=count, seconds=seconds)
            grown_kb.append((proxy.usage().rss_bytes_max - before_bytes) / 1024)
        run.facts |= {"proxy_grew_kb": grown_kb[-1]}
        plan.say(f"  {count} streams: {run.facts}")
        p99 = [run.commit_ms(99)]
        first = first or p99
        name = f"open streams: {count:,}, commit → row p99"
        figures.append(figure(name, "ms", p99, "one stream", first, **run.facts))
    # What one stream makes it load and allocate is no part of what one more stream costs.
    each_kb = (grown_kb[-1] - grown_kb[0]) / (STREAMS[-1] - STREAMS[0])
    figures.append(figure("proxy memory for one more stream", "KB", [each_kb]))
    return figures


def members(plan: Plan) -> list[Figure]:
    """Commit → row of a fleet of two: producer, dispatcher and consumers on one member, and not."""
    lab = plan.lab
    seconds = plan.size(*SECONDS)
    with lab.fleet_of_two(DATABASE) as (dispatcher, other):
        placements = {
            "one member": (dispatcher, dispatcher),
            "INSERT at the dispatcher, STREAM at another member": (dispatcher, other),
            "INSERT and STREAM at another member than the dispatcher": (other, other),
        }
        runs: dict[str, list[Steady]] = {name: [] for name in placements}
        for _ in range(plan.pairs):
            for name, (inserts, streaming) in placements.items():
                run = _streamed(
                    lab,
                    inserts,
                    streaming,
                    streams=CONSUMERS,
                    seconds=seconds,
                    per_second=PER_SECOND_ACROSS,
                )
                plan.say(f"  {name}: {run.facts}")
                runs[name].append(run)
    within, *across = runs
    return [
        figure(
            f"{name}, p{percent}",
            "ms",
            (run.commit_ms(percent) for run in runs[name]),
            within,
            (run.commit_ms(percent) for run in runs[within]),
            target,
            our_runs=[run.facts for run in runs[name]],
        )
        for name in across
        for percent, target in ((50, None), (99, ratio_at_most(ACROSS_MAX)))
    ]


def _streamed(
    lab: Lab,
    inserts: Endpoint,
    streaming: Endpoint,
    *,
    streams: int,
    seconds: float,
    per_second: int = PER_SECOND,
) -> Steady:
    """Send through one proxy and receive over *streams* streams of one, on a table of its own."""
    with messages.fresh_table(lab, inserts, DATABASE) as table:
        reader = consumers(
            *(streaming.port, DATABASE, table),
            count=streams,
            ack_batch=100,
            ack_connections=ACK_CONNECTIONS,
            stream_first=True,
        )
        where = inserts.port, DATABASE, table
        source = producer(*where, per_second=per_second, seconds=seconds)
        return steady(lab, streaming, DATABASE, table, source, [reader], seconds=seconds)
