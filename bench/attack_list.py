"""The attacks themselves: what a client sends that means harm, and what it may be answered."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

import pymysql

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
from bench.fleet import FleetError
from bench.processes import HOST


DATABASE: Final = "attacks"
LONGEST_MS: Final = 50.0
# What a text of more than 16 MiB may cost the others.
LARGE_LONGEST_MS: Final = 200.0
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
            _text(lambda: _sets(100 * kilobyte)),
            answers=frozenset({DONE, "1436"}),
        ),
        refused("SET, 300 KB", lambda: _sets(300 * kilobyte)),
        refused("SET, 16 MB", lambda: _sets(16 * megabyte)),
        *(
            refused(f"parentheses, {size} MB", partial(_open, size * megabyte))
            for size in (1, 4, 16)
        ),
        # They are too many tokens, a tenth of them is not.
        Named(
            "nested parentheses, 10^5",
            _text(lambda: _nested(100_000 // scale)),
            answers=REFUSED | {DONE},
        ),
        *(
            Named(f"IN list, {size} MB", _text(partial(_among, size * megabyte)))
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
            "INSERT, a value of 16 MB", _text(lambda: _value(16 * megabyte - 100), repeats=4)
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
        Named("PREPARE with 65,535 ?", _one(partial(_prepares, 65_535 // scale))),
        Named("EXECUTE with 65,535 values", _one(partial(_executes, 65_535 // scale))),
        # MySQL knows no batches: 1235.
        Named(
            "batch of 10^5 rows",
            _one(partial(_batch, 100_000 // scale), BULK_OPERATIONS),
            answers=frozenset({DONE, "1235"}),
        ),
        Named("zlib bomb, 16 MB", partial(_bomb, 16 * megabyte, COMPRESS)),
        Named("zstd bomb, 16 MB", partial(_bomb, 16 * megabyte, ZSTD)),
        Named("zlib answer, 16 MB", _one(partial(_random_answer, 16 * megabyte), COMPRESS)),
        # At full size its groups are more than merge_memory: 1038 comes once they have filled it.
        Named(
            "merge, GROUP … ORDER BY COUNT",
            _text(lambda: b"SELECT s, COUNT(*) c FROM t GROUP BY s ORDER BY c", repeats=1),
            answers=frozenset({DONE, "1038"}),
        ),
        Named("merge, ORDER BY", _text(lambda: b"SELECT id, s FROM t ORDER BY a", repeats=1)),
        Named(
            "merge, groups out",
            _text(lambda: b"SELECT s, COUNT(*) FROM t GROUP BY s", repeats=1),
        ),
        Named("merge, prepared", _one(_prepared_merge)),
        Named(
            "long data, 4 x 64 MB",
            _one(partial(_long_data, 4, 64 * megabyte - 100)),
            large=True,
            answers=frozenset({DONE, "4082"}),
        ),
        Named(
            "unfinished, 3 x 48 MB",
            partial(_unfinished, 3, 48 * megabyte),
            large=True,
            answers=frozenset({SILENT}),
        ),
        Named("12,000 statements", _one(partial(_statements, 12_000 // scale))),
        Named("unread, 300 x 200 KB", _one(partial(_unread, 300, 200 * kilobyte))),
        Named(
            "logins, $A$, 4 at a time",
            partial(_logins, 4, 1.0 if quick else 4.0),
            answers=frozenset({"1045"}),
        ),
    ]


def _one(act: Callable[[Attacker], object], capabilities: int = 0) -> Attack:
    """Do all of it on one connection."""

    def attack(port: int) -> set[str]:
        client = Attacker(port, DATABASE, capabilities)
        act(client)
        client.close()
        return client.answers

    return attack


def _text(make: Callable[[], bytes], repeats: int = 3) -> Attack:
    """Run a text, made before, a few times."""

    def act(client: Attacker) -> None:
        text = make()
        for _ in range(repeats):
            client.query(text)

    return _one(act)


def _repeated(head: bytes, item: bytes, size: int) -> bytes:
    return head + b",".join([item] * (size // (len(item) + 1)))


def _sets(size: int) -> bytes:
    return _repeated(b"SET ", b"@a=1", size)


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


def _with_parameters(count: int) -> bytes:
    return b"SELECT s FROM t WHERE id = 1 AND a IN (" + b",".join([b"?"] * count) + b")"


def _prepares(count: int, client: Attacker) -> None:
    text = _with_parameters(count)
    for _ in range(3):
        client.prepare(text)


def _executes(count: int, client: Attacker) -> None:
    statement_id = client.prepare(_with_parameters(count))
    for _ in range(3):
        values = [n.to_bytes(4, "little") for n in range(count)]
        client.run(execution(statement_id, LONG * count, values))


def _batch(rows: int, client: Attacker) -> None:
    statement_id = client.prepare(b"INSERT INTO sink (id, a, s) VALUES (?, ?, ?)")
    body = b"".join(
        b"\0" + n.to_bytes(4, "little") + b"\0" + n.to_bytes(4, "little") + b"\0\x03abc"
        for n in range(10**7, 10**7 + rows)  # beyond those of another attack
    )
    client.run(bulk_execution(statement_id, LONG + LONG + STRING, body))


def _bomb(size: int, algorithm: int, port: int) -> set[str]:
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


def _random_answer(size: int, client: Attacker) -> None:
    for _ in range(3):
        # Random digits: what hardly shrinks takes longest. MySQL 9.7 has no MD5.
        client.query(
            b"SELECT GROUP_CONCAT(SHA2(RAND(), 256) SEPARATOR '') FROM t"
            if size < 1 << 20
            else b"SELECT REPEAT(SHA2(RAND(), 256), %d)" % (size // 64)
        )


def _prepared_merge(client: Attacker) -> None:
    statement_id = client.prepare(b"SELECT id, a, s FROM t ORDER BY a")
    client.run(b"\x17" + statement_id.to_bytes(4, "little") + b"\0\x01\0\0\0")


def _long_data(statements: int, size: int, client: Attacker) -> None:
    data = b"x" * size
    prepared = [client.prepare(b"SELECT LENGTH(?)") for _ in range(statements)]
    for statement_id in prepared:
        client.send(long_data(statement_id, 0, data))
    client.run(execution(prepared[-1], STRING, [b""]))


def _unfinished(connections: int, size: int, port: int) -> set[str]:
    clients = [Attacker(port, DATABASE) for _ in range(connections)]
    data = unfinished(size, size - 1)
    for client in clients:
        client.send_raw(data)
    for number, client in enumerate(clients):
        client.listen(0 if number else 1)
    for client in clients:
        client.close()
    return {answer for client in clients for answer in client.answers}


def _statements(count: int, client: Attacker) -> None:
    for n in range(count):
        client.prepare(b"SELECT s, %d FROM t WHERE id = ?" % n)


def _unread(count: int, size: int, client: Attacker) -> None:
    for _ in range(count):
        client.send(b"\x03SELECT REPEAT('x', %d)" % size)
    time.sleep(1)
    client.answer()


def _logins(at_once: int, seconds: float, port: int) -> set[str]:
    """Wrong passwords, each with the whole of RSA and 5,000 rounds of SHA-256."""
    deadline = time.monotonic() + seconds
    answers: set[str] = set()
    wrong = {"user": "guessed", "password": "wrong", "ssl_disabled": True}

    def guess(_: int) -> None:
        while time.monotonic() < deadline:
            try:
                pymysql.connect(host=HOST, port=port, **wrong).close()
            except pymysql.MySQLError as error:
                answers.add(str(error.args[0]))
            else:
                answers.add(DONE)

    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(guess, range(at_once)))
    return answers
