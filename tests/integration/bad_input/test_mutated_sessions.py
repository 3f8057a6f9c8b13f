"""Whole sessions with bytes changed, cut, doubled and swapped: none disturbs anybody else.

A session of an account without a password needs no answer to go on, so each is one string of bytes
that is written at once. `MUTATED_SESSIONS=200000 MUTATED_SEED=7` runs that many.
"""

import asyncio
import os
import random
import struct
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.fixtures.background import in_thread
from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import eventually, rows, run, value


SESSIONS = int(os.environ.get("MUTATED_SESSIONS", "1500"))
SEED = int(os.environ.get("MUTATED_SEED", "1"))
AT_ONCE = 16
# The shared proxy waits two seconds for a login; what it makes of a session takes far less.
ANSWER_S = 60.0
DESCRIPTORS_SPARE = 80  # backend connections that the load has the pools open
pytestmark = [pytest.mark.one_server, pytest.mark.slow]

# PROTOCOL_41, CONNECT_WITH_DB, SECURE_CONNECTION, PLUGIN_AUTH, TRANSACTIONS.
CAPABILITIES = 1 << 9 | 1 << 3 | 1 << 15 | 1 << 19 | 1 << 13
LOGIN = struct.pack("<IIB23x", CAPABILITIES, 1 << 24, 45) + b"root\0\0commerce\0"
Mutate = Callable[[random.Random, bytearray], None]


def frame(payload: bytes, sequence: int) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([sequence]) + payload


def commands() -> list[bytes]:
    """Return packets of each command, good ones, with answers of every form."""
    execute_head = struct.pack("<IBI", 1, 0, 1)
    return [
        b"\x03SELECT id, message FROM my_message WHERE id = 5",
        b"\x03SELECT COUNT(*), 'abc', NULL, 1.5 FROM my_message GROUP BY priority ORDER BY 1",
        b"\x03INSERT INTO other_message (id, message) VALUES (1, '{}'), (4, NULL)",
        b"\x03UPDATE other_message SET time_acked = NOW() WHERE id IN (1, 4)",
        b"\x03DELETE FROM other_message WHERE id = 1",
        b"\x03BEGIN",
        b"\x03COMMIT",
        b"\x03SET @a = 1, sql_mode = '', NAMES utf8mb4",
        b"\x03SHOW VITESS_SHARDS",
        b"\x03SELECT 1; SELECT 2; SHOW WARNINGS",
        b"\x03STREAM * FROM other_message",
        b"\x03/*!40101 SET NAMES utf8 */",
        b"\x16SELECT id, message FROM my_message WHERE id = ? AND message <=> ?",
        b"\x17" + execute_head + b"\x02\x01\x08\x00\xfd\x00" + struct.pack("<q", 5),
        b"\x18" + struct.pack("<IH", 1, 0) + b"long data",
        b"\x1a" + struct.pack("<I", 1),
        b"\x1c" + struct.pack("<II", 1, 10),
        b"\xfa" + struct.pack("<IH", 1, 128) + b"\x08\x00\x00" + struct.pack("<q", 5),
        b"\x19" + struct.pack("<I", 1),
        b"\x02commerce",
        b"\x04my_message\0%",
        b"\x09",
        b"\x0a",
        b"\x0e",
        b"\x1b\x00\x00",
        b"\x1f",
        b"\x11root\0\0commerce\0\x2d\0mysql_native_password\0",
        b"\x0c" + struct.pack("<I", 1 << 30),
        b"\x01",
    ]


def compressed(packets: bytes) -> bytes:
    body = zlib.compress(packets)
    return len(body).to_bytes(3, "little") + b"\0" + len(packets).to_bytes(3, "little") + body


def session(dice: random.Random, known: list[bytes]) -> bytes:
    """Return the bytes of a good session with some of the *known* commands."""
    plugin = dice.choice([b"mysql_native_password", b"caching_sha2_password"])
    hello = bytearray(LOGIN + plugin + b"\0")
    packets = b"".join(frame(dice.choice(known), 0) for _ in range(dice.randint(1, 6)))
    if dice.random() < 0.15:
        hello[0] |= 1 << 5  # COMPRESS
        packets = compressed(packets)
    elif dice.random() < 0.1:
        hello[1] |= 1 << 3  # SSL: what follows is no handshake of TLS
    return frame(bytes(hello), 1) + packets


def flip(dice: random.Random, data: bytearray) -> None:
    for _ in range(dice.randint(1, 4)):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def overwrite(dice: random.Random, data: bytearray) -> None:
    at = dice.randrange(len(data))
    data[at : at + 4] = dice.choice(
        [b"\xff" * 4, b"\0" * 4, b"\xfb\xfc\xfd\xfe", dice.randbytes(4), b"''\"`"]
    )


def cut(dice: random.Random, data: bytearray) -> None:
    start = dice.randrange(len(data))
    del data[start : start + dice.randint(1, 40)]


def double(dice: random.Random, data: bytearray) -> None:
    start = dice.randrange(len(data))
    data[start:start] = data[start : start + dice.randint(1, 60)] * dice.randint(1, 20)


def stuff(dice: random.Random, data: bytearray) -> None:
    at = dice.randrange(len(data))
    data[at:at] = dice.randbytes(dice.randint(1, 200))


def end_early(dice: random.Random, data: bytearray) -> None:
    del data[dice.randrange(len(data)) :]


MUTATIONS: tuple[Mutate, ...] = (flip, overwrite, cut, double, stuff, end_early)


def mutated(dice: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(dice.randint(1, 3)):
        if changed:
            dice.choice(MUTATIONS)(dice, changed)
    return bytes(changed)


async def play(port: int, data: bytes, *, rudely: bool) -> None:
    """Write *data* and read until the proxy hangs up; *rudely*: reset the connection at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with suppress(ConnectionError):
        writer.write(data)
        if rudely:
            writer.transport.abort()
            return
        writer.write_eof()
        async with asyncio.timeout(ANSWER_S):
            while await reader.read(1 << 16):
                pass
    writer.close()


async def play_all(port: int, dice: random.Random) -> None:
    known = commands()
    left = iter(range(SESSIONS))

    async def player() -> None:
        for _ in left:
            await play(port, mutated(dice, session(dice, known)), rudely=dice.random() < 0.2)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(player())


def descriptors(proxy: RunningProxy) -> int:
    return len(os.listdir(f"/proc/{proxy.pid}/fd"))


def test_mutated_sessions_disturb_nobody_and_leave_nothing_behind(sharded, consume):
    proxy = sharded.proxy
    sharded.create(columns="message VARCHAR(40)", batch_size=1000, ack_wait=3600)
    sharded.create("other_message", ack_wait=3600)
    sql = "STREAM /*vt+ PREFETCH=0 */ id FROM my_message"
    stream = consume(proxy, sql, database="commerce")
    producer, reader = (proxy.connect(database="commerce", autocommit=True) for _ in range(2))
    columns = "id, message, time_acked"
    run(producer, f"INSERT INTO my_message ({columns}) VALUES (5, 'five', {time.time_ns()})")
    before = descriptors(proxy)
    stopping = threading.Event()

    def read() -> int:
        """Read one row again and again, and return how often: each answer must be right."""
        count = 0
        while not stopping.wait(0.002):
            assert rows(reader, "SELECT message FROM my_message WHERE id = 5") == (("five",),)
            count += 1
        return count

    def produce() -> list[int]:
        """Send a message every few milliseconds; return the ids of those that were sent."""
        sent: list[int] = []
        while not stopping.wait(0.01):
            ident = 1000 + len(sent)
            run(producer, f"INSERT INTO my_message (id, message) VALUES ({ident}, 'm')")
            sent.append(ident)
        return sent

    reading, producing = in_thread(read), in_thread(produce)
    began_s = time.monotonic()
    asyncio.run(play_all(proxy.port, random.Random(SEED)))
    took_s = time.monotonic() - began_s
    stopping.set()
    answers, sent = reading(), producing()
    print(f"{SESSIONS} sessions in {took_s:.0f} s, {answers} answers")
    assert isinstance(answers, int), answers
    assert answers
    assert sorted(stream.ids(len(sent), 30)) == sent
    eventually(lambda: descriptors(proxy) <= before + DESCRIPTORS_SPARE, "they are closed")
    assert value(proxy.connect(database="commerce"), "SELECT 1") == 1
