"""Bulk INSERTs, 1,000 rows and about 100 KB each, through the proxy and direct."""

from collections.abc import Sequence

from bench import messages
from bench.clients import writer
from bench.fleet import Fleet
from bench.lab import Endpoint, Keyspace
from bench.plan import Plan
from bench.report import Figure, Series


PLAIN, SHARDED = "bulk", "bulk_sharded"
CONNECTIONS = 4
STATEMENTS = (40, 15)  # of each connection
ROWS = 1_000
RUN_S = 120.0
VSCHEMA = {
    "sharded": True,
    "vindexes": {"hash": {"type": "hash"}},
    "tables": {"queue": {"column_vindexes": [{"column": "id", "name": "hash"}]}},
}
TABLE = "queue"


def bulk_insert(plan: Plan) -> list[Figure]:
    """A plain table, a message table, and a message table on two shards."""
    lab = plan.lab
    both = (lab.server_number(0), lab.server_number(1))
    with (
        lab.database(PLAIN),
        lab.database(SHARDED, *both),
        lab.proxy(Keyspace(PLAIN, both[:1]), Keyspace(SHARDED, both, VSCHEMA)) as proxy,
    ):
        return [
            _compare(plan, "plain table", proxy, PLAIN, comment=False),
            _compare(plan, "message table", proxy, PLAIN, comment=True),
            _compare(plan, "message table, 2 shards", proxy, SHARDED, comment=True),
        ]


def _compare(plan: Plan, name: str, proxy: Endpoint, database: str, *, comment: bool) -> Figure:
    def rate(side: str, target: Endpoint, database: str) -> float:
        value = _rate(plan, target, database, comment=comment)
        plan.say(f"  {name}, {side}: {value:,.0f} rows/s")
        return value

    ours, theirs = plan.interleaved(
        lambda: rate("streamfrom", proxy, database),
        lambda: rate("direct", plan.lab.direct, PLAIN),
    )
    return Figure(
        f"bulk INSERT, {name}",
        "rows/s",
        Series.of(ours),
        "direct, one server",
        Series.of(theirs),
    )


def _rate(plan: Plan, target: Endpoint, database: str, *, comment: bool) -> float:
    """Return the rows a second of several connections into an empty table."""
    statements = plan.size(*STATEMENTS)

    def prepare(number: int) -> Sequence[str]:
        first = number * statements * ROWS + 1
        return [
            messages.insert(TABLE, range(one, one + ROWS))
            for one in range(first, first + statements * ROWS, ROWS)
        ]

    target.execute(messages.create_table(TABLE, comment=comment), database)
    plan.lab.settle()
    with Fleet() as fleet:
        worker = fleet.add(writer(target.port, database, prepare, connections=CONNECTIONS))
        fleet.start()
        elapsed_s: float = worker.result(RUN_S)
    target.execute(f"DROP TABLE {TABLE}", database)
    return CONNECTIONS * statements * ROWS / elapsed_s
