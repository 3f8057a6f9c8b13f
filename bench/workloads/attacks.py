"""A healthy client next to clients that do harm, or send what a careless program sends.

The healthy one selects a row by its key every 20 ms. Its waits count from the scheduled moment,
so that a stall is not left out of the percentile (coordinated omission).
"""

import asyncio
import time
from typing import Final

from bench import messages
from bench.attack_list import DATABASE, Named, every_attack
from bench.connection import Connection
from bench.fleet import Fleet, LabError, Signals, Work
from bench.lab import Endpoint, Keyspace, sharded
from bench.plan import Plan
from bench.report import Figure, figure, percentile, value_at_most


PERIOD_S: Final = 0.02
IDLE_S: Final = (3, 1)
# A longer attack is cut off; its effect up to then counts.
ATTACK_S_MAX: Final = 60.0
AFTER_S: Final = 0.5
ROWS: Final = (450_000, 45_000)
TABLE: Final = "(id BIGINT PRIMARY KEY, a INT, s VARCHAR(40), KEY (a))"
TABLES: Final = {"t": TABLE, "sink": TABLE, "blobs": "(id BIGINT PRIMARY KEY, b LONGBLOB)"}
# `guessed`, as a server stores it for caching_sha2_password: 5,000 rounds of SHA-256.
GUESSED: Final = "$A$005$abcdefghijklmnopqrstk7ZyVbeXr2rY3vGyQH2Bw4lLkL0N9mQfOq5fZ7uJrX0"
SETTINGS: Final = f"""
[[users]]
name = "root"
password = ""
[[users]]
name = "guessed"
password_hash = "{GUESSED}"
account = "shared"
"""


def attacks(plan: Plan) -> list[Figure]:
    """Measure the healthy client's p99 and longest wait during each attack, and the proxy's memory."""
    lab = plan.lab
    both = (lab.server_number(0), lab.server_number(1))
    keyspace = Keyspace(DATABASE, both, sharded(*TABLES))
    rows = plan.size(*ROWS)
    figures: list[Figure] = []
    with lab.database(DATABASE, *both):
        for shard, server in enumerate(both):
            for name, columns in TABLES.items():
                lab.execute(f"CREATE TABLE {name} {columns}", DATABASE, server)
            values = f"2 * n - {1 - shard}, n, CONCAT('row ', n)"
            messages.fill(lab, DATABASE, "t", "id, a, s", values, rows // 2, server)
        with lab.proxy(keyspace, settings=SETTINGS) as proxy:
            idle = _beside(proxy, None, plan.size(*IDLE_S))
        for each in every_attack(rows, quick=plan.quick):
            # One proxy process per attack, so that memory left by one is not attributed to another.
            with lab.proxy(keyspace, settings=SETTINGS) as proxy:
                found = _beside(proxy, each)
            longest_ms, idle_ms = [found["longest_ms"]], [idle["longest_ms"]]
            most = value_at_most(each.longest_ms)
            figures.append(figure(each.name, "ms", longest_ms, "idle", idle_ms, most))
            plan.say(f"  {each.name}: {found}")
    return figures


def _beside(proxy: Endpoint, attack: Named | None, idle_s: float = 0.0) -> dict[str, float]:
    """Return the waits during *attack*, and the proxy's memory before, at its peak, and after."""
    with Fleet() as fleet:
        healthy = fleet.add(_healthy(proxy.port))
        attacker = fleet.add(_attacking(attack, proxy.port)) if attack else None
        before = proxy.usage().rss_bytes
        fleet.start()
        deadline = time.monotonic() + (ATTACK_S_MAX if attacker else idle_s)
        while time.monotonic() < deadline and not (attacker and attacker.has_ended):
            time.sleep(0.05)
        if attacker and not attacker.has_ended:
            attacker.end()
        time.sleep(AFTER_S)
        waits = sorted(fleet.stop([healthy])[0])
        usage = proxy.usage()
    if not waits:
        raise LabError("the healthy client got no answer")
    return {
        "p99_ms": round(percentile(waits, 99), 1),
        "longest_ms": round(waits[-1], 1),
        "before_mb": before // 10**6,
        "most_mb": usage.rss_bytes_max // 10**6,
        "after_mb": usage.rss_bytes // 10**6,
    }


def _healthy(port: int) -> Work:
    async def work(signals: Signals) -> list[float]:
        connection = await Connection.open(port, DATABASE)
        query = "SELECT s FROM t WHERE id = 1"
        await connection.query(query)
        await signals.start()
        waits_ms: list[float] = []
        due_s = time.perf_counter()

        def note() -> None:
            waits_ms.append(max(time.perf_counter() - due_s, 0) * 1000)

        async def ask() -> None:
            nonlocal due_s
            while True:
                await asyncio.sleep(max(due_s - time.perf_counter(), 0))
                await connection.query(query)
                note()
                due_s += PERIOD_S

        await signals.until_stopped(ask())
        note()  # a request without a reply has waited until now
        connection.close()
        return waits_ms

    return work


def _attacking(named: Named, port: int) -> Work:
    async def work(signals: Signals) -> None:
        await signals.start()
        named.check(named.attack(port))

    return work
