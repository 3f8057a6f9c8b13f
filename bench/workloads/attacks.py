"""A healthy client beside clients that mean harm, or send what a careless program sends.

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
from bench.report import Figure, Goal, Series, Target, number, percentile


PERIOD_S: Final = 0.02
IDLE_S: Final = (3, 1)
# An attack that takes longer is cut off; what it did so far counts.
ATTACK_S_MAX: Final = 60.0
AFTER_S: Final = 0.5
ROWS: Final = (450_000, 45_000)
WIDTH_MAX: Final = 100
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one attack did.

    before_mb, most_mb, after_mb: the proxy's resident memory.
    """

    name: str
    beside: Waits
    goal_ms: float
    before_mb: float
    most_mb: float
    after_mb: float

    def cells(self) -> tuple[str, ...]:
        """Return the line as the table shows it."""
        return (
            self.name,
            f"{number(self.beside.p99_ms)} ms",
            f"{number(self.beside.longest_ms)} ms",
            f"{Goal.AT_MOST} {number(self.goal_ms)} ms",
            "yes" if self.beside.longest_ms <= self.goal_ms else "NO",
            *(f"{megabytes:.0f}" for megabytes in (self.before_mb, self.most_mb)),
            f"{self.after_mb:.0f}",
        )


HEADER: Final = (
    *("beside", "p99", "longest", "goal", "met"),
    *("MB before", "at most", "after"),
)


def shown(idle: Waits, outcomes: Sequence[Outcome]) -> str:
    """Return the table: a line for each attack, the idle proxy first."""
    quiet = ("nothing", f"{number(idle.p99_ms)} ms", f"{number(idle.longest_ms)} ms")
    lines = [HEADER, (*quiet, *[""] * 5), *(outcome.cells() for outcome in outcomes)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place in (0, 3, 4) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def waits_ms(due_s: Sequence[float], answered_s: Sequence[float], end_s: float) -> list[float]:
    """Return the waits of SELECTs that were due and answered at these moments.

    end_s: when the measure ended, until which what has no answer has waited.
    """
    ends_s = [*answered_s, *[end_s] * (len(due_s) - len(answered_s))]
    return [(end - start) * 1000 for start, end in zip(due_s, ends_s, strict=True)]


def attacks(plan: Plan) -> list[Figure]:
    """The healthy client's p99 and longest wait beside each attack; the proxy's memory."""
    lab = plan.lab
    both = (lab.server_number(0), lab.server_number(1))
    rows = plan.size(*ROWS)
    outcomes: list[Outcome] = []
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
            outcomes.append(Outcome(each.name, beside, each.longest_ms, *memory))
            plan.say("  " + "  ".join(outcomes[-1].cells()))
    print(shown(idle, outcomes), end="\n\n")
    return [
        Figure(
            outcome.name,
            "ms",
            Series.of([outcome.beside.longest_ms]),
            "idle",
            Series.of([idle.longest_ms]),
            Target(Goal.AT_MOST, outcome.goal_ms, of_ratio=False),
            {
                "p99_ms": outcome.beside.p99_ms,
                "idle_p99_ms": idle.p99_ms,
                "before_mb": outcome.before_mb,
                "most_mb": outcome.most_mb,
                "after_mb": outcome.after_mb,
            },
        )
        for outcome in outcomes
    ]


def _beside(
    proxy: Endpoint, attack: Named | None, idle_s: float = 0.0
) -> tuple[Waits, float, float, float]:
    """Return the waits beside *attack* and the proxy's MB before, at most, and after."""
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
