"""A healthy client beside clients that mean harm, or send what a careless program sends.

The healthy one asks for a row by its key every 20 ms. Its waits count from the moment that its
schedule gave, so that a stall is not left out of the percentile (coordinated omission).
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pymysql

from bench import messages
from bench.attacker import (
    BULK_OPERATIONS,
    COMPRESS,
    DONE,
    LONG,
    SILENT,
    STRING,
    ZSTD,
    Attacker,
    bulk_execution,
    execution,
    long_data,
    packed,
    unfinished,
)
from bench.connection import Connection
from bench.fleet import Fleet, FleetError, Signals, Work
from bench.lab import Endpoint, Keyspace
from bench.plan import Plan
from bench.processes import HOST
from bench.report import Figure, Goal, Series, Target, number, percentile


DATABASE: Final = "attacks"
PERIOD_S: Final = 0.02
IDLE_S: Final = (3, 1)
# An attack that takes longer is cut off; what it did so far counts.
ATTACK_S_MAX: Final = 60.0
AFTER_S: Final = 0.5
ROWS: Final = (450_000, 45_000)
LONGEST_MS: Final = 50.0
# What a text of more than 16 MiB may cost the others.
LARGE_LONGEST_MS: Final = 200.0
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

# Sends its commands to a port and returns what they were answered, as `Attacker.answers`.
Attack = Callable[[int], set[str]]
# Too many tokens, or with fewer of them nothing that is understood, by the proxy or by the server.
REFUSED: Final = frozenset({"3170", "1235", "1064"})


@dataclass(frozen=True, slots=True)
class Named:
    """An attack and its name.

    large: it sends more than 16 MiB in one text.
    answers: what it may be answered; another answer would make its figure one of something else.
    """

    name: str
    attack: Attack
    large: bool = False
    answers: frozenset[str] = frozenset({DONE})

    def check(self, found: set[str]) -> None:
        """Raise FleetError unless *found* is what it may be answered."""
        if not found or not found <= self.answers:
            expected = ", ".join(sorted(self.answers))
            raise FleetError(f"{self.name}: answered {sorted(found)}, expected {expected}")

    @property
    def longest_ms(self) -> float:
        """What the healthy client may wait at most."""
        return LARGE_LONGEST_MS if self.large else LONGEST_MS


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


# --- the attacks ------------------------------------------------------------------------------


def every_attack(rows: int, *, quick: bool) -> list[Named]:
    """Return all of them; *rows* are those of the table that merges read."""
    scale = 10 if quick else 1

    def refused(name: str, make: Callable[[], bytes]) -> Named:
        return Named(name, _text(make), answers=REFUSED)

    kilobyte, megabyte = (1 << 10), (1 << 20) // scale
    return [
        # MySQL's parser has not the stack for it: 1436.
        Named(
            "SET, 100 KB",
            _text(lambda: _repeated(b"SET ", b"@a=1", 100 * kilobyte)),
            answers=frozenset({DONE, "1436"}),
        ),
        refused("SET, 300 KB", lambda: _repeated(b"SET ", b"@a=1", 300 * kilobyte)),
        refused("SET, 16 MB", lambda: _repeated(b"SET ", b"@a=1", 16 * megabyte)),
        *(
            refused(f"parentheses, {size} MB", partial(_open, size * megabyte))
            for size in (1, 4, 16)
        ),
        Named(
            "nested parentheses, 10^5",
            _text(lambda: _nested(100_000 // scale)),
            answers=REFUSED | {DONE},  # they are too many tokens, a tenth of them is not
        ),
        *(
            Named(
                f"IN list, {size} MB",
                _text(partial(_among, size * megabyte)),
            )
            for size in (1, 16)
        ),
        Named(
            "IN list over shards, 16 MB", _text(lambda: _among_all(b"SELECT s", 16 * megabyte))
        ),
        Named("DELETE over shards, 4 MB", _text(lambda: _among_all(b"DELETE", 4 * megabyte))),
        refused("one word, 15 MB", lambda: b"SELECT " + b"a" * (15 * megabyte)),
        Named("escapes, 15 MB", _text(lambda: _escapes(15 * megabyte))),
        Named(f"INSERT of {rows:,} rows", _text(lambda: _inserts(rows), repeats=1)),
        Named(
            "INSERT, a value of 16 MB",
            _text(lambda: _value(16 * megabyte - 100), repeats=4),
        ),
        Named(
            "INSERT, a value of 40 MB",
            _text(lambda: _value(40 * megabyte), repeats=2),
            large=True,
        ),
        Named(
            "SELECT, a value of 40 MB",
            _text(lambda: b"SELECT REPEAT('x', %d)" % (40 * megabyte), repeats=2),
            large=True,
        ),
        Named("PREPARE with 65,535 ?", _prepares(65_535 // scale)),
        Named("EXECUTE with 65,535 values", _executes(65_535 // scale)),
        # MySQL knows no batches: 1235.
        Named(
            "batch of 10^5 rows", _batch(100_000 // scale), answers=frozenset({DONE, "1235"})
        ),
        Named("zlib bomb, 16 MB", _bomb(16 * megabyte, COMPRESS)),
        Named("zstd bomb, 16 MB", _bomb(16 * megabyte, ZSTD)),
        Named("zlib answer, 16 MB", _unpacked_answer(16 * megabyte)),
        # At full size its groups are more than merge_memory: 1038 comes once they have filled it.
        Named(
            "merge, GROUP … ORDER BY COUNT",
            _text(lambda: _GROUPS_SORTED, repeats=1),
            answers=frozenset({DONE, "1038"}),
        ),
        Named("merge, ORDER BY", _text(lambda: b"SELECT id, s FROM t ORDER BY a", repeats=1)),
        Named("merge, groups out", _text(lambda: _GROUPS, repeats=1)),
        Named("merge, prepared", _prepared_merge),
        Named(
            "long data, 4 x 64 MB",
            _long_data(4, 64 * megabyte - 100),
            large=True,
            answers=frozenset({DONE, "4082"}),
        ),
        Named(
            "unfinished, 3 x 48 MB",
            _unfinished(3, 48 * megabyte),
            large=True,
            answers=frozenset({SILENT}),
        ),
        Named("12,000 statements", _statements(12_000 // scale)),
        Named("unread, 300 x 200 KB", _unread(300, 200 * kilobyte)),
        Named(
            "logins, $A$, 4 at a time",
            _logins(4, 1.0 if quick else 4.0),
            answers=frozenset({"1045"}),
        ),
    ]


_GROUPS_SORTED: Final = b"SELECT s, COUNT(*) c FROM t GROUP BY s ORDER BY c"
_GROUPS: Final = b"SELECT s, COUNT(*) FROM t GROUP BY s"


def _text(make: Callable[[], bytes], repeats: int = 3) -> Attack:
    """Run a text, made before, a few times."""

    def attack(port: int) -> set[str]:
        text = make()
        client = Attacker(port, DATABASE)
        for _ in range(repeats):
            client.query(text)
        client.close()
        return client.answers

    return attack


def _repeated(head: bytes, item: bytes, size: int) -> bytes:
    return head + b",".join([item] * (size // (len(item) + 1)))


def _among(size: int) -> bytes:
    return _repeated(b"SELECT s FROM t WHERE id IN (", b"123456", size) + b")"


def _among_all(head: bytes, size: int) -> bytes:
    ids = b",".join(b"%d" % n for n in range(10**6, 10**6 + size // 8))
    return head + b" FROM sink WHERE id IN (" + ids + b")"


def _escapes(size: int) -> bytes:
    return b"REPLACE INTO blobs (id, b) VALUES (1,'" + rb"\n" * (size // 2) + b"')"


def _open(size: int) -> bytes:
    return b"SELECT " + b"(" * size


def _nested(depth: int) -> bytes:
    return b"SELECT s FROM t WHERE id = " + b"(" * depth + b"1" + b")" * depth


def _inserts(rows: int) -> bytes:
    values = b",".join(b"(%d,%d,'row %d')" % (n, n, n) for n in range(1, rows + 1))
    return b"INSERT INTO sink (id, a, s) VALUES " + values


def _value(size: int) -> bytes:
    return b"SELECT LENGTH('" + b"x" * size + b"')"


def _prepares(count: int) -> Attack:
    def attack(port: int) -> set[str]:
        text = b"SELECT s FROM t WHERE id = 1 AND a IN (" + b",".join([b"?"] * count) + b")"
        client = Attacker(port, DATABASE)
        for _ in range(3):
            client.prepare(text)
        client.close()
        return client.answers

    return attack


def _executes(count: int) -> Attack:
    def attack(port: int) -> set[str]:
        text = b"SELECT s FROM t WHERE id = 1 AND a IN (" + b",".join([b"?"] * count) + b")"
        client = Attacker(port, DATABASE)
        statement_id = client.prepare(text)
        for _ in range(3):
            values = [n.to_bytes(4, "little") for n in range(count)]
            client.send(execution(statement_id, LONG * count, values))
            client.answer()
        client.close()
        return client.answers

    return attack


def _batch(rows: int) -> Attack:
    def attack(port: int) -> set[str]:
        client = Attacker(port, DATABASE, BULK_OPERATIONS)
        statement_id = client.prepare(b"INSERT INTO sink (id, a, s) VALUES (?, ?, ?)")
        body = b"".join(
            b"\0" + n.to_bytes(4, "little") + b"\0" + n.to_bytes(4, "little") + b"\0\x03abc"
            for n in range(10**7, 10**7 + rows)  # beyond those of another attack
        )
        client.send(bulk_execution(statement_id, LONG + LONG + STRING, body))
        client.answer()
        client.close()
        return client.answers

    return attack


def _bomb(size: int, algorithm: int) -> Attack:
    def attack(port: int) -> set[str]:
        text = b"\x03" + _value(size - 200)
        framed = len(text).to_bytes(3, "little") + b"\0" + text
        bomb = packed(framed, level=9, zstd=algorithm == ZSTD)
        answers = set()
        for _ in range(4):
            client = Attacker(port, DATABASE, algorithm)
            client.send_raw(bomb)
            answers.add(client.answer())
            client.close()
        return answers

    return attack


def _unpacked_answer(size: int) -> Attack:
    def attack(port: int) -> set[str]:
        client = Attacker(port, DATABASE, COMPRESS)
        for _ in range(3):
            # Random digits: what hardly shrinks takes longest. MySQL 9.7 has no MD5.
            client.query(
                b"SELECT GROUP_CONCAT(SHA2(RAND(), 256) SEPARATOR '') FROM t"
                if size < 1 << 20
                else b"SELECT REPEAT(SHA2(RAND(), 256), %d)" % (size // 64)
            )
        client.close()
        return client.answers

    return attack


def _prepared_merge(port: int) -> set[str]:
    client = Attacker(port, DATABASE)
    statement_id = client.prepare(b"SELECT id, a, s FROM t ORDER BY a")
    client.send(b"\x17" + statement_id.to_bytes(4, "little") + b"\0\x01\0\0\0")
    client.answer()
    client.close()
    return client.answers


def _long_data(statements: int, size: int) -> Attack:
    def attack(port: int) -> set[str]:
        client = Attacker(port, DATABASE)
        data = b"x" * size
        prepared = [client.prepare(b"SELECT LENGTH(?)") for _ in range(statements)]
        for statement_id in prepared:
            client.send(long_data(statement_id, 0, data))
        client.send(execution(prepared[-1], STRING, [b""]))
        client.answer()
        client.close()
        return client.answers

    return attack


def _unfinished(connections: int, size: int) -> Attack:
    def attack(port: int) -> set[str]:
        clients = [Attacker(port, DATABASE) for _ in range(connections)]
        data = unfinished(size, size - 1)
        for client in clients:
            client.send_raw(data)
        clients[0].listen(1)
        for client in clients[1:]:
            client.listen(0)
        for client in clients:
            client.close()
        return {answer for client in clients for answer in client.answers}

    return attack


def _statements(count: int) -> Attack:
    def attack(port: int) -> set[str]:
        client = Attacker(port, DATABASE)
        for n in range(count):
            client.prepare(b"SELECT s, %d FROM t WHERE id = ?" % n)
        client.close()
        return client.answers

    return attack


def _unread(count: int, size: int) -> Attack:
    def attack(port: int) -> set[str]:
        client = Attacker(port, DATABASE)
        for _ in range(count):
            client.send(b"\x03SELECT REPEAT('x', %d)" % size)
        time.sleep(1)
        client.answer()
        client.close()
        return client.answers

    return attack


def _logins(at_once: int, seconds: float) -> Attack:
    """Wrong passwords, each with the whole of RSA and 5,000 rounds of SHA-256."""

    def attack(port: int) -> set[str]:
        import threading

        deadline = time.monotonic() + seconds
        answers: set[str] = set()

        def guess() -> None:
            while time.monotonic() < deadline:
                try:
                    pymysql.connect(
                        host=HOST,
                        port=port,
                        user="guessed",
                        password="wrong",
                        ssl_disabled=True,
                    ).close()
                except pymysql.MySQLError as error:
                    answers.add(str(error.args[0]))
                else:
                    answers.add(DONE)

        threads = [threading.Thread(target=guess) for _ in range(at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    return attack
