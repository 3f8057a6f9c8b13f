"""A healthy client next to clients that mean harm, or send what a careless program sends.

The healthy one asks for a row by its key every 20 ms. Its waits count from the moment that its
schedule gave, so that a stall is not left out of the percentile (coordinated omission).
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench import messages
from bench.attack_list import DATABASE, Named, every_attack
from bench.connection import Connection
from bench.fleet import Fleet, FleetError, Signals, Work
from bench.lab import Endpoint, Keyspace
from bench.plan import Plan
from bench.report import Figure, figure, percentile, value_at_most


PERIOD_S: Final = 0.02
IDLE_S: Final = (3, 1)
# An attack that takes longer is cut off; what it did so far counts.
ATTACK_S_MAX: Final = 60.0
AFTER_S: Final = 0.5
ROWS: Final = (450_000, 45_000)
VSCHEMA: Final = {
    "sharded": True,
    "vindexes": {"hash": {"type": "hash"}},
    "tables": {
        name: {"column_vindexes": [{"column": "id", "name": "hash"}]}
        for name in ("t", "sink", "blobs")
    },
}
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


@dataclass(frozen=True, slots=True)
class Waits:
    """How long the healthy client waited, in milliseconds."""

    p99_ms: float
    longest_ms: float

    @classmethod
    def of(cls, waits_ms: Sequence[float]) -> "Waits":
        """Make one of all waits. Raises ValueError where there is none."""
        ordered = sorted(waits_ms)
        return cls(percentile(ordered, 99), ordered[-1])


def waits_ms(due_s: Sequence[float], answered_s: Sequence[float], end_s: float) -> list[float]:
    """Return the waits of SELECTs that were due and answered at these moments.

    end_s: when the measure ended, until which what has no answer has waited.
    """
    ends_s = [*answered_s, *[end_s] * (len(due_s) - len(answered_s))]
    return [(end - start) * 1000 for start, end in zip(due_s, ends_s, strict=True)]


def attacks(plan: Plan) -> list[Figure]:
    """The healthy client's p99 and longest wait during each attack; the proxy's memory."""
    lab = plan.lab
    both = (lab.server_number(0), lab.server_number(1))
    rows = plan.size(*ROWS)
    figures: list[Figure] = []
    with lab.database(DATABASE, *both):
        for shard, server in enumerate(both):
            create = "(id BIGINT PRIMARY KEY, a INT, s VARCHAR(40), KEY (a))"
            for table in ("t", "sink"):
                lab.execute(f"CREATE TABLE {table} {create}", DATABASE, server)
            lab.execute(
                "CREATE TABLE blobs (id BIGINT PRIMARY KEY, b LONGBLOB)", DATABASE, server
            )
            values = f"2 * n - {1 - shard}, n, CONCAT('row ', n)"
            messages.fill(server, lab, DATABASE, "t", "id, a, s", values, rows // 2)
        with lab.proxy(Keyspace(DATABASE, both, VSCHEMA), settings=SETTINGS) as proxy:
            idle, *_ = _beside(proxy, None, plan.size(*IDLE_S))
        for each in every_attack(rows, quick=plan.quick):
            # A process for each: what one leaves in memory is not taken for another's.
            with lab.proxy(Keyspace(DATABASE, both, VSCHEMA), settings=SETTINGS) as proxy:
                beside, *memory = _beside(proxy, each)
            before_mb, most_mb, after_mb = memory
            figures.append(
                figure(
                    each.name,
                    "ms",
                    [beside.longest_ms],
                    "idle",
                    [idle.longest_ms],
                    value_at_most(each.longest_ms),
                    p99_ms=beside.p99_ms,
                    idle_p99_ms=idle.p99_ms,
                    before_mb=before_mb,
                    most_mb=most_mb,
                    after_mb=after_mb,
                )
            )
            plan.say(
                f"  {each.name}: p99 {beside.p99_ms:.1f} ms, longest {beside.longest_ms:.1f} ms;"
                f" {before_mb:.0f} MB before, {most_mb:.0f} at most, {after_mb:.0f} after"
            )
    return figures


def _beside(
    proxy: Endpoint, attack: Named | None, idle_s: float = 0.0
) -> tuple[Waits, float, float, float]:
    """Return the waits during *attack* and the proxy's MB before, at most, and after."""
    with Fleet() as fleet:
        healthy = fleet.add(_healthy(proxy.port))
        attacker = None if attack is None else fleet.add(_attacking(attack, proxy.port))
        before = proxy.usage().rss_bytes
        fleet.start()
        if attacker is None:
            time.sleep(idle_s)
        else:
            deadline = time.monotonic() + ATTACK_S_MAX
            while time.monotonic() < deadline and not attacker.has_ended:
                time.sleep(0.05)
            if not attacker.has_ended:
                attacker.end()
        time.sleep(AFTER_S)
        waits: list[float] = fleet.stop([healthy])[0]
        usage = proxy.usage()
    if not waits:
        raise FleetError("the healthy client got no answer")
    memory = (before / 1e6, usage.rss_bytes_max / 1e6, usage.rss_bytes / 1e6)
    return Waits.of(waits), *memory


def _healthy(port: int) -> Work:
    async def work(signals: Signals) -> list[float]:
        connection = await Connection.open(port, DATABASE)
        query = "SELECT s FROM t WHERE id = 1"
        await connection.query(query)
        await signals.start()
        due_s: list[float] = []
        answered_s: list[float] = []
        start_s = time.perf_counter()

        async def ask() -> None:
            while True:
                due = start_s + len(due_s) * PERIOD_S
                await asyncio.sleep(max(due - time.perf_counter(), 0))
                due_s.append(due)
                await connection.query(query)
                answered_s.append(time.perf_counter())

        await signals.until_stopped(ask())
        connection.close()
        return waits_ms(due_s, answered_s, time.perf_counter())

    return work


def _attacking(named: Named, port: int) -> Work:
    async def work(signals: Signals) -> None:
        await signals.start()
        named.check(named.attack(port))

    return work
