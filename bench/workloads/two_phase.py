"""Transactions over two shards: what it costs that they commit on both or on none."""

import asyncio
import time

from bench.audit import AuditError
from bench.clients import open_many
from bench.connection import Connection
from bench.fleet import Fleet, Signals, Work
from bench.lab import Endpoint, Keyspace
from bench.plan import Plan
from bench.report import Figure, Series


DATABASE = "pairs"
TABLE = "pair"
HIGH = 1 << 63  # the first id of the second shard, by the vindex `numeric`
CLIENTS = 16
TRANSACTIONS = (400, 100)  # of each client
RUN_S = 180.0
VSCHEMA = {
    "sharded": True,
    "vindexes": {"numeric": {"type": "numeric"}},
    "tables": {TABLE: {"column_vindexes": [{"column": "id", "name": "numeric"}]}},
}


def twopc(plan: Plan) -> list[Figure]:
    """Two INSERTs on two shards in a transaction, `transaction_mode` "twopc" against "multi"."""
    lab = plan.lab
    both = (lab.server_number(0), lab.server_number(1))
    keyspace = Keyspace(DATABASE, both, VSCHEMA)
    with (
        lab.database(DATABASE, *both),
        lab.proxy(keyspace, settings='transaction_mode = "twopc"') as exact,
        lab.proxy(keyspace) as plain,
    ):
        for server in both:
            create = f"CREATE TABLE {TABLE} (id BIGINT UNSIGNED PRIMARY KEY, s VARCHAR(90))"
            lab.execute(create, DATABASE, server)
        ours, theirs = plan.interleaved(
            lambda: _run(plan, "twopc", exact), lambda: _run(plan, "multi", plain)
        )
    name = f"transaction over two shards, {CLIENTS} clients"
    return [
        Figure(
            f"{name}, twopc",
            "/s",
            Series.of(rate for rate, _ in ours),
            "multi",
            Series.of(rate for rate, _ in theirs),
        ),
        Figure(
            f"{name}, processor time",
            "µs",
            Series.of(cost_us for _, cost_us in ours),
            "multi",
            Series.of(cost_us for _, cost_us in theirs),
        ),
    ]


def _run(plan: Plan, mode: str, proxy: Endpoint) -> tuple[float, float]:
    """Return the transactions a second, and the processor time of the proxy for one in µs.

    Raises:
        AuditError: a shard lacks a row of a transaction whose COMMIT succeeded, or has another.
    """
    each = plan.size(*TRANSACTIONS)
    count = CLIENTS * each
    plan.lab.settle()
    before_s = proxy.usage().cpu_s
    with Fleet() as fleet:
        worker = fleet.add(_clients(proxy.port, each))
        fleet.start()
        elapsed_s: float = worker.result(RUN_S)
    cost_us = (proxy.usage().cpu_s - before_s) * 1e6 / count
    for number, first in enumerate((0, HIGH)):
        server = plan.lab.server_number(number)
        found = plan.lab.execute(
            f"SELECT COUNT(*), COUNT(DISTINCT id), MIN(id), MAX(id) FROM {TABLE}",
            DATABASE,
            server,
        )
        if tuple(map(int, found[0])) != (count, count, first, first + count - 1):
            raise AuditError(f"{mode}: shard {number + 1} has {found[0]} of {count} rows")
        plan.lab.execute(f"TRUNCATE TABLE {TABLE}", DATABASE, server)
    plan.say(f"  {mode}: {count / elapsed_s:,.0f}/s, {cost_us:.0f} µs of the proxy for one")
    return count / elapsed_s, cost_us


def _clients(port: int, each: int) -> Work:
    async def work(signals: Signals) -> float:
        pool = await open_many(port, DATABASE, CLIENTS)
        await signals.start()
        start = time.perf_counter()
        await asyncio.gather(
            *(_write(one, number * each, each) for number, one in enumerate(pool))
        )
        elapsed_s = time.perf_counter() - start
        for connection in pool:
            connection.close()
        return elapsed_s

    return work


async def _write(connection: Connection, first: int, count: int) -> None:
    for number in range(first, first + count):
        await connection.query("BEGIN")
        for id_ in (number, HIGH + number):
            await connection.query(f"INSERT INTO {TABLE} (id, s) VALUES ({id_}, '{'x' * 80}')")
        await connection.query("COMMIT")
