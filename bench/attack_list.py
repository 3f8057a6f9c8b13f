"""The attacks: harmful input from a client, and the allowed replies to it."""

import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pymysql

from bench.attacker import (
    COMPRESS,
    DONE,
    LONG,
    SILENT,
    STRING,
    ZSTD,
    Attacker,
    execution,
    packed,
)
from bench.fleet import LabError
from bench.processes import HOST
from streamfrom.proxy.wire.compression import ZLIB, Packer, zstd_packer
from streamfrom.proxy.wire.framing import frame


DATABASE: Final = "attacks"
LONGEST_MS: Final = 50.0
# The longest wait that a text of more than 16 MiB may cause for other clients.
LARGE_LONGEST_MS: Final = 200.0
# Sends its commands to a port and returns the replies in the form of `Attacker.answers`.
Attack = Callable[[int], set[str]]
# Too many tokens or, with fewer tokens, text that the proxy or the server does not understand.
REFUSED: Final = frozenset({"3170", "1235", "1064"})


@dataclass(frozen=True, slots=True)
class Named:
    """An attack and its name.

    longest_ms: the longest allowed wait of the healthy client.
    answers: the allowed replies; with any other the figure would measure something else.
    """

    name: str
    attack: Attack
    answers: frozenset[str] = frozenset({DONE})
    longest_ms: float = LONGEST_MS

    def check(self, found: set[str]) -> None:
        """Raise LabError unless all of *found* are allowed."""
        if not found or not found <= self.answers:
            expected = ", ".join(sorted(self.answers))
            raise LabError(f"{self.name}: answered {sorted(found)}, expected {expected}")


def every_attack(rows: int, *, quick: bool) -> Iterator[Named]:
    """Yield all attacks, each with its text in memory. The table that merges read has *rows* rows."""
    scale = 10 if quick else 1
    mb, many, parameters = (1 << 20) // scale, 100_000 // scale, 65_535 // scale
    asked = b"SELECT s FROM t WHERE id = 1 AND a IN (" + b",".join([b"?"] * parameters) + b")"

    def executes(client: Attacker) -> None:
        statement = client.prepare(asked)
        for _ in range(3):
            values = [n.to_bytes(4, "little") for n in range(parameters)]
            client.run(execution(statement, LONG * parameters, values))

    def random_answer(client: Attacker) -> None:
        # Data that hardly shrinks takes longest. MySQL 9.7 has no MD5.
        client.run(b"\x03SELECT REPEAT(SHA2(RAND(), 256), %d)" % (16 * mb // 64))

    def prepared_merge(client: Attacker) -> None:
        client.run(execution(client.prepare(b"SELECT id, a, s FROM t ORDER BY a"), b"", []))

    def long_data(client: Attacker) -> None:
        prepared = [client.prepare(b"SELECT LENGTH(?)") for _ in range(4)]
        for each in prepared:
            client.send(struct.pack("<BIH", 0x18, each, 0) + b"x" * (64 * mb - 100))
        client.run(execution(prepared[-1], STRING, [b""]))

    def statements(client: Attacker) -> None:
        for n in range(12_000 // scale):
            client.prepare(b"SELECT s, %d FROM t WHERE id = ?" % n)

    def unread(client: Attacker) -> None:
        for _ in range(300):
            client.send(b"\x03SELECT REPEAT('x', %d)" % (200 << 10))
        time.sleep(1)
        client.listen()

    def bomb(flag: int, packer: Packer) -> Attack:
        text = b"\x03" + _value(16 * mb - 200)
        data = packed(len(text).to_bytes(3, "little") + b"\0" + text, packer)

        def act(client: Attacker) -> None:
            client.send_raw(data)
            client.listen()

        return _each_of(4, flag, act)

    inserts = b",".join(b"(%d,%d,'row %d')" % (n, n, n) for n in range(1, rows + 1))
    ids = b",".join(b"%d" % n for n in range(10**6, 10**6 + 2 * mb))
    may_be = frozenset({DONE}).union
    yield Named("SET, 16 MB", _text(b"SET @a=1" + b",@a=1" * (16 * mb // 5)), REFUSED)
    # These are too many tokens, but a tenth of them is not.
    yield Named(
        "nested parentheses, 10^5",
        _text(b"SELECT s FROM t WHERE id = " + b"(" * many + b"1" + b")" * many),
        may_be(REFUSED),
    )
    yield Named(
        "IN list over shards, 16 MB", _text(b"SELECT s FROM sink WHERE id IN (" + ids + b")")
    )
    yield Named(
        "escapes, 15 MB",
        _text(b"REPLACE INTO blobs (id, b) VALUES (1,'" + rb"\n" * (15 * mb // 2) + b"')"),
    )
    yield Named(
        f"INSERT of {rows:,} rows",
        _text(b"INSERT INTO sink (id, a, s) VALUES " + inserts, repeats=1),
    )
    yield Named("a value of 16 MB", _text(_value(16 * mb - 100), repeats=4))
    yield Named(
        "a value of 40 MB", _text(_value(40 * mb), repeats=2), longest_ms=LARGE_LONGEST_MS
    )
    yield Named("EXECUTE with 65,535 values", _each_of(1, 0, executes))
    yield Named("zlib bomb, 16 MB", bomb(COMPRESS, ZLIB))
    yield Named("zstd bomb, 16 MB", bomb(ZSTD, zstd_packer(6)))
    yield Named("zlib answer, 16 MB", _each_of(3, COMPRESS, random_answer))
    # At full size its groups exceed merge_memory: 1038 comes once they have filled it.
    yield Named(
        "merge, GROUP … ORDER BY COUNT",
        _text(b"SELECT s, COUNT(*) c FROM t GROUP BY s ORDER BY c", repeats=1),
        may_be({"1038"}),
    )
    yield Named("merge, ORDER BY, prepared", _each_of(1, 0, prepared_merge))
    yield Named(
        "long data, 4 x 64 MB", _each_of(1, 0, long_data), may_be({"4082"}), LARGE_LONGEST_MS
    )
    yield Named(
        "unfinished, 3 x 48 MB",
        lambda port: _unfinished(3, 48 * mb, port),
        frozenset({SILENT}),
        LARGE_LONGEST_MS,
    )
    yield Named("12,000 statements", _each_of(1, 0, statements))
    yield Named("unread, 300 x 200 KB", _each_of(1, 0, unread))
    yield Named(
        "logins, $A$, 4 at a time",
        lambda port: _logins(4, 1.0 if quick else 4.0, port),
        frozenset({"1045"}),
    )


def _each_of(count: int, capabilities: int, act: Callable[[Attacker], object]) -> Attack:
    """Run *act* on *count* connections, one after the other."""

    def attack(port: int) -> set[str]:
        answers: set[str] = set()
        for _ in range(count):
            client = Attacker(port, DATABASE, capabilities)
            act(client)
            client.close()
            answers |= client.answers
        return answers

    return attack


def _text(text: bytes, repeats: int = 3) -> Attack:
    def act(client: Attacker) -> None:
        for _ in range(repeats):
            client.run(b"\x03" + text)

    return _each_of(1, 0, act)


def _value(size: int) -> bytes:
    return b"SELECT LENGTH('" + b"x" * size + b"')"


def _unfinished(connections: int, size: int, port: int) -> set[str]:
    clients = [Attacker(port, DATABASE) for _ in range(connections)]
    data = frame(b"\x03" + b"x" * (size - 1), 0)[: size - 1]
    for client in clients:
        client.send_raw(data)
    time.sleep(1)
    for client in clients:
        client.listen(0)
        client.close()
    return set.union(*(client.answers for client in clients))


def _logins(at_once: int, seconds: float, port: int) -> set[str]:
    """Log in with wrong passwords. Each login costs a full RSA exchange and 5,000 rounds of SHA-256."""
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
