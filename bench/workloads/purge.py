"""Acked rows purged by partition and row by row, and how long that makes another client wait."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import pymysql

from bench import messages
from bench.lab import Lab
from bench.plan import Plan
from bench.processes import HOST, LabError
from bench.report import Figure, figure, ratio_at_least
from streamfrom.engine.clock import SystemClock
from streamfrom.engine.messaging.shell.partition_upkeep import PATIENCE_FIRST_S
from streamfrom.engine.messaging.table.message_table import MessageTable, load
from streamfrom.engine.messaging.upkeep.partition_store import Outcome
from streamfrom.engine.messaging.upkeep.partitions import SPANS, partition_by
from streamfrom.engine.messaging.upkeep.purge import PURGE_ROWS_MAX
from streamfrom.proxy.backends.shard import ShardRuntime
from streamfrom.proxy.backends.shard_store import ShardStore
from streamfrom.proxy.config.dsn import Dsn, SslMode
from streamfrom.proxy.config.keyspaces import ShardConfig
from streamfrom.proxy.config.toml_values import Secret


DATABASE = "purges"
ROWS = (1_000_000, 100_000)
DAY = SPANS["DAY"]
# All rows are of the first day that the table has a partition for.
START_NS = DAY.floor_ns(1_700_000_000 * messages.NS_PER_S)
CUTOFF_NS = START_NS + DAY.length_ns
PAUSE_S = 0.002
CONNECT_S = 10.0
TARGET = ratio_at_least(50)

Purge = Callable[[ShardStore, MessageTable], Awaitable[None]]


@dataclass(slots=True)
class _Beside:
    """A client that inserts one row after the other, and how long each took."""

    waits_s: list[float] = field(default_factory=list)
    is_there: threading.Event = field(default_factory=threading.Event)
    is_over: threading.Event = field(default_factory=threading.Event)

    def run(self, port: int, table: str) -> None:
        with pymysql.connect(
            host=HOST, port=port, user="root", database=DATABASE, autocommit=True
        ) as connection:
            ident = 2**62
            while not self.is_over.wait(PAUSE_S):
                ident += 1
                start = time.monotonic()
                connection.cursor().execute(f"INSERT INTO {table} (id) VALUES ({ident})")
                self.waits_s.append(time.monotonic() - start)
                self.is_there.set()


@dataclass(frozen=True, slots=True)
class _Run:
    rows_per_second: float
    longest_ms: float


def purge(plan: Plan) -> list[Figure]:
    """Purge the same rows both ways next to a client that inserts, and try to while a transaction is open."""
    rows = plan.size(*ROWS)
    with plan.lab.database(DATABASE):
        ours, theirs = plan.interleaved(
            lambda: _run(plan, rows, _by_partition, "by partition"),
            lambda: _run(plan, rows, _by_rows, "row by row"),
        )
        held = [_run(plan, rows, _held, "held", is_held=True) for _ in range(plan.pairs)]
    name = f"{rows:,} acked rows purged"
    return [
        figure(
            f"{name} by partition",
            "rows/s",
            (run.rows_per_second for run in ours),
            f"row by row, {PURGE_ROWS_MAX} in a transaction",
            (run.rows_per_second for run in theirs),
            TARGET,
        ),
        figure(
            f"{name}, longest INSERT beside it",
            "ms",
            (run.longest_ms for run in ours),
            "row by row",
            (run.longest_ms for run in theirs),
        ),
        figure(
            "a transaction in the way of a drop, longest INSERT beside it",
            "ms",
            (run.longest_ms for run in held),
        ),
    ]


async def _by_partition(store: ShardStore, table: MessageTable) -> None:
    await _drop(store, table, Outcome.DONE)


async def _held(store: ShardStore, table: MessageTable) -> None:
    await _drop(store, table, Outcome.HELD)


async def _drop(store: ShardStore, table: MessageTable, expected: Outcome) -> None:
    name, _ = DAY.partition(START_NS)
    outcome = await store.drop_partition(table, "-", name, CUTOFF_NS, PATIENCE_FIRST_S)
    if outcome is not expected:
        raise LabError(f"the partition is {outcome.value}, not {expected.value}")


async def _by_rows(store: ShardStore, table: MessageTable) -> None:
    while (await store.purge(table, "-", CUTOFF_NS)).found == PURGE_ROWS_MAX:
        pass


def _run(plan: Plan, rows: int, purge: Purge, what: str, *, is_held: bool = False) -> _Run:
    lab = plan.lab
    with _filled(lab, rows) as table, contextlib.ExitStack() as stack:
        if is_held:
            holder = stack.enter_context(
                pymysql.connect(host=HOST, port=lab.server.port, user="root", database=DATABASE)
            )
            holder.cursor().execute(f"SELECT COUNT(*) FROM {table}")
        beside = _Beside()
        thread = threading.Thread(target=beside.run, args=(lab.server.port, table))
        thread.start()
        try:
            if not beside.is_there.wait(CONNECT_S):
                raise LabError("the client beside the purge does not insert")
            seconds = asyncio.run(_timed(lab, purge))
        finally:
            beside.is_over.set()
            thread.join()
    found = _Run(rows / seconds, max(beside.waits_s) * 1000)
    plan.say(f"  {what}: {seconds:.3f} s, longest INSERT {found.longest_ms:.1f} ms")
    return found


@contextlib.contextmanager
def _filled(lab: Lab, rows: int) -> Iterator[str]:
    table = lab.fresh_name()
    sql = messages.create_table(table, comment=True)
    lab.execute(f"{sql} {partition_by(DAY, START_NS).decode()}", DATABASE)
    messages.fill(
        lab.server,
        lab,
        DATABASE,
        table,
        "id, time_next, time_acked, message",
        f"{START_NS} + n, NULL, {START_NS} + n, '{messages.body(1)}'",
        rows,
    )
    yield table
    lab.execute(f"DROP TABLE {table}", DATABASE)


async def _timed(lab: Lab, purge: Purge) -> float:
    """Return how long a purge takes through what the proxy itself purges with."""
    dsn = Dsn(HOST, lab.server.port, None, "root", Secret(""), DATABASE, SslMode.DISABLED, None)
    shard = ShardRuntime(DATABASE, ShardConfig("-", dsn, (), 4), pool_timeout_s=10)
    try:
        await shard.probe()
        store = ShardStore({(DATABASE, "-"): shard}, SystemClock())
        (raw,) = await store.discover(DATABASE, "-")
        table = load(DATABASE, raw)
        assert isinstance(table, MessageTable)
        # A connection is there, as in a proxy that runs.
        await store.purge(table, "-", 0)
        start = time.monotonic()
        await purge(store, table)
        return time.monotonic() - start
    finally:
        await shard.stop()
