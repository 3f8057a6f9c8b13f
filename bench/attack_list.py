"""The attacks themselves: what a client sends that means harm, and what it may be answered."""

import time
from collections.abc import Callable
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
