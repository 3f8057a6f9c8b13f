"""From COMMIT to the consumer, at 1,000 messages a second; and the same with many streams."""

from bench import messages
from bench.clients import consumers, producer
from bench.lab import Endpoint, Keyspace, Lab
from bench.opponents import poller
from bench.plan import Plan
from bench.report import Figure, Goal, Series, Target
from bench.steady import Steady, steady


DATABASE = "latency"
PER_SECOND = 1_000
SECONDS = (12, 6)
CONSUMERS = 4
STREAMS = (1, 10, 100, 1000)
ACK_CONNECTIONS = 4


def latency(plan: Plan) -> list[Figure]:
    """Commit → row at the consumer, against a 100 ms poller."""
    lab = plan.lab
    seconds = plan.size(*SECONDS)
    with (
        lab.database(DATABASE),
        lab.proxy(Keyspace(DATABASE, (lab.server,))) as proxy,
    ):

        def ours() -> Steady:
            run = streamed(lab, proxy, streams=CONSUMERS, seconds=seconds)
            plan.say(f"  streamfrom: {run.facts}")
            return run

        def theirs() -> Steady:
            port = lab.server.port
            with messages.fresh_table(lab, lab.direct, DATABASE) as table:
                run = steady(
                    lab,
                    lab.direct,
                    DATABASE,
                    table,
                    producer(port, DATABASE, table, per_second=PER_SECOND, seconds=seconds),
                    [poller(port, DATABASE, table, workers=1)],
                    seconds=seconds,
                )
            plan.say(f"  100 ms poller: {run.facts}")
            return run

        our_runs, their_runs = plan.interleaved(ours, theirs)

    def figure(name: str, percent: float, target: Target | None = None) -> Figure:
        return Figure(
            name,
            "ms",
            Series.of(run.commit_ms(percent) for run in our_runs),
            "100 ms poller",
            Series.of(run.commit_ms(percent) for run in their_runs),
            target,
            {
                "our_runs": [run.facts for run in our_runs],
                "their_runs": [run.facts for run in their_runs],
            },
        )

    return [
        figure("commit → row, 1,000 msg/s, p50", 50),
        figure("commit → row, 1,000 msg/s, p99", 99, Target(Goal.AT_MOST, 1 / 10)),
        figure("commit → row, 1,000 msg/s, p99.9", 99.9),
        Figure(
            "schedule → row, insert included, p99",
            "ms",
            Series.of(run.schedule_ms(99) for run in our_runs),
            "100 ms poller",
            Series.of(run.schedule_ms(99) for run in their_runs),
        ),
    ]


def streams(plan: Plan) -> list[Figure]:
    """What one more open stream costs: latency and memory."""
    lab = plan.lab
    seconds = plan.size(*SECONDS)
    figures = []
    first: Series | None = None
    grown_kb: list[float] = []
    for count in STREAMS:
        with (
            lab.database(DATABASE),
            lab.proxy(Keyspace(DATABASE, (lab.server,))) as proxy,
        ):
            before_bytes = proxy.usage().rss_bytes
            run = streamed(lab, proxy, streams=count, seconds=seconds)
            grown_kb.append((proxy.usage().rss_bytes_max - before_bytes) / 1024)
        run.facts |= {"proxy_grew_kb": grown_kb[-1]}
        plan.say(f"  {count} streams: {run.facts}")
        p99 = Series.of([run.commit_ms(99)])
        first = first or p99
        figures.append(
            Figure(
                f"open streams: {count:,}, commit → row p99",
                "ms",
                p99,
                "one stream",
                first,
                facts=run.facts,
            )
        )
    # What one stream makes it load and allocate is no part of what one more stream costs.
    each_kb = (grown_kb[-1] - grown_kb[0]) / (STREAMS[-1] - STREAMS[0])
    figures.append(Figure("proxy memory for one more stream", "KB", Series.of([each_kb])))
    return figures


def streamed(lab: Lab, proxy: Endpoint, *, streams: int, seconds: float) -> Steady:
    """Send and receive through the proxy over *streams* streams, on a table of its own."""
    with messages.fresh_table(lab, proxy, DATABASE) as table:
        return steady(
            lab,
            proxy,
            DATABASE,
            table,
            producer(proxy.port, DATABASE, table, per_second=PER_SECOND, seconds=seconds),
            [
                consumers(
                    proxy.port,
                    DATABASE,
                    table,
                    count=streams,
                    ack_batch=100,
                    ack_connections=ACK_CONNECTIONS,
                    stream_first=True,
                )
            ],
            seconds=seconds,
        )
