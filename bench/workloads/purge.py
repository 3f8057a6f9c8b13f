"""Purge acked rows by partition and row by row."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from bench import messages
from bench.fleet import LabError
from bench.lab import Lab
from bench.plan import Plan
from bench.processes import HOST
from bench.report import Figure, figure, ratio_at_least
from streamfrom.engine.clock import SystemClock
from streamfrom.engine.messaging.shell.purger import PATIENCE_FIRST_S
from streamfrom.engine.messaging.table.discovery import discover
from streamfrom.engine.messaging.table.message_table import MessageTable, load
from streamfrom.engine.messaging.upkeep.partitions import (
    SPANS,
    DropPartition,
    Outcome,
    partition_by,
)
from streamfrom.engine.messaging.upkeep.purge import PURGE_ROWS_MAX, Purge
from streamfrom.proxy.backends.shard import ShardRuntime
from streamfrom.proxy.backends.shard_store import ShardStore
from streamfrom.proxy.config.dsn import Dsn, SslMode
from streamfrom.proxy.config.keyspaces import ShardConfig
from streamfrom.proxy.config.toml_values import Secret


DATABASE = "purges"
ROWS = (1_000_000, 100_000)
DAY = SPANS["DAY"]
# All rows belong to the first day for which the table has a partition.
START_NS = DAY.floor_ns(1_700_000_000 * messages.NS_PER_S)
CUTOFF_NS = START_NS + DAY.length_ns

Purging = Callable[[ShardStore, MessageTable], Awaitable[None]]


def purge(plan: Plan) -> list[Figure]:
    """Purge the same rows both ways."""
    rows = plan.size(*ROWS)
    with plan.lab.database(DATABASE):
        ours, theirs = plan.interleaved(
            lambda: _a_second(plan, rows, _by_partition, "by partition"),
            lambda: _a_second(plan, rows, _by_rows, "row by row"),
        )
    against = f"row by row, {PURGE_ROWS_MAX} in a transaction"
    name = f"{rows:,} acked rows purged by partition"
    return [figure(name, "rows/s", ours, against, theirs, ratio_at_least(50))]


async def _by_partition(store: ShardStore, table: MessageTable) -> None:
    name, _ = DAY.partition(START_NS)
    outcome, _ = await store.run(table, "-", DropPartition(name, CUTOFF_NS, PATIENCE_FIRST_S))
    if outcome is not Outcome.DONE:
        raise LabError(f"the partition is {outcome.value}")


async def _by_rows(store: ShardStore, table: MessageTable) -> None:
    while (await store.run(table, "-", Purge(CUTOFF_NS))).found == PURGE_ROWS_MAX:
        pass


def _a_second(plan: Plan, rows: int, purge: Purging, what: str) -> float:
    """Return the rows per second that *purge* removes."""
    lab = plan.lab
    table = lab.fresh_name()
    sql = messages.create_table(table, comment=True)
    lab.execute(f"{sql} {partition_by(DAY, START_NS).decode()}", DATABASE)
    columns = "id, time_next, time_acked, message"
    values = f"{START_NS} + n, NULL, {START_NS} + n, '{messages.body(1)}'"
    messages.fill(lab, DATABASE, table, columns, values, rows)
    seconds = asyncio.run(_timed(lab, purge))
    lab.execute(f"DROP TABLE {table}", DATABASE)
    plan.say(f"  {what}: {seconds:.3f} s")
    return rows / seconds


async def _timed(lab: Lab, purge: Purging) -> float:
    """Return the duration of a purge over the proxy's own store."""
    dsn = Dsn(HOST, lab.server.port, None, "root", Secret(""), DATABASE, SslMode.DISABLED, None)
    shard = ShardRuntime(DATABASE, ShardConfig("-", dsn, (), 4), pool_timeout_s=10)
    try:
        await shard.probe()
        store = ShardStore({(DATABASE, "-"): shard}, SystemClock())
        (raw,) = await store.ask(DATABASE, "-", discover)
        table = load(DATABASE, raw)
        assert isinstance(table, MessageTable)
        # Open a connection first; a running proxy has one.
        await store.run(table, "-", Purge(0))
        start = time.monotonic()
        await purge(store, table)
        return time.monotonic() - start
    finally:
        await shard.stop()
