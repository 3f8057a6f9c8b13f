"""One connection for the quick reads of many, and its end when one of them is slow."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager

import pytest

from streamfrom.proxy.backends.account import SHARDS_ACCOUNT
from streamfrom.proxy.backends.backend import Backend
from streamfrom.proxy.backends.pooling import multiplexing as module
from streamfrom.proxy.backends.pooling.multiplexing import (
    FIRST_TRIAL,
    QUICK_S,
    LatencyClass,
    SharedConnection,
    SharedConnections,
)
from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.backends.statement_ids import StatementKey
from streamfrom.proxy.wire.commands import query
from tests.proxy.backends.pools import Tenant, pool_on
from tests.proxy.fake_answers import HANG_S, Error, Ok, Silence, until


SETTINGS = Settings({"autocommit": "ON"}.items())
OTHERS = Settings({"autocommit": "ON", "sql_mode": "ANSI"}.items())
READ = query(b"SELECT a FROM t WHERE id = 1")


class Read:
    """A reader on a line that has an OK for its answer."""

    def __init__(self, line: SharedConnection, backend: Backend) -> None:
        self.line = line
        self.backend = backend
        self.fate = ""
        line.read_sent()
        backend.send(READ, self, ahead=True)

    def data_received(self, data):
        size = 4 + int.from_bytes(data[:3], "little")
        return data[size:]

    def answer_completed(self):
        if not self.fate:
            self.line.read_over(self.backend)
        self.fate += "answered"

    def connection_lost(self, error):
        self.line.connection_lost(self.backend)
        self.fate += "lost"

    def take_over(self):
        self.fate = "taken over, "


def lines_of(pool, **options):
    return SharedConnections(pool, lambda: 0.0, **options)


def line_of(lines, database="db"):
    line = lines.matching(SHARDS_ACCOUNT, SETTINGS, 0, database)
    assert line is not None
    return line


@asynccontextmanager
async def line_on(server):
    server.on("FROM t", Ok())
    async with pool_on(server, size=8) as pool:
        line = line_of(lines_of(pool))
        assert line.connection(0.0) is None
        await until(lambda: line.is_held)
        yield pool, line


def read(line):
    backend = line.connection(0.0)
    assert backend is not None
    return Read(line, backend)


async def held(lines, database):
    line = line_of(lines, database)
    line.connection(0.0)
    await until(lambda: line.is_held)
    return line


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """No line breaks up because the machine that tests it is slow."""
    monkeypatch.setattr(module, "_PATIENCE_S", HANG_S)


class Timers:
    """What the line wants to have called later: it is called when the test says so."""

    def __init__(self):
        self._calls = []

    def call_later(self, delay_s, callback, *arguments):
        self._calls.append((callback, arguments))
        return asyncio.TimerHandle(0, callback, arguments, asyncio.get_running_loop())

    async def fire(self):
        """Let the time of all of them come."""
        await until(lambda: self._calls)
        calls, self._calls = self._calls, []
        for callback, arguments in calls:
            callback(*arguments)
        await asyncio.sleep(0)
        await asyncio.sleep(0)


@pytest.fixture
async def timers(monkeypatch):
    made = Timers()
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", made.call_later)
    return made


@pytest.fixture
def impatient(patient, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_S", 0.001)


async def test_reads_of_a_later_session_leave_an_outdated_login(server, monkeypatch):
    monkeypatch.setattr(module, "_REOPEN_S", 0.0)
    async with line_on(server) as (_, line):
        old = read(line)
        old.backend.outdated_s = 1.0
        assert line.connection(1.0) is old.backend
        assert line.connection(2.0) is None
        await until(lambda: line.is_held)
        assert line.connection(2.0) not in (None, old.backend)
        assert read(line).backend is line.connection(0.0)


async def test_reads_of_one_turn_of_the_loop_leave_in_one_write(server, monkeypatch):
    async with line_on(server) as (pool, line):
        backend = line.connection(0.0)
        writes = []
        write = backend.link.write
        monkeypatch.setattr(type(backend.link), "write", lambda _, data: writes.append(data))
        reads = [read(line) for _ in range(5)]
        assert writes == []
        await asyncio.sleep(0)
        assert len(writes) == 1
        monkeypatch.undo()
        write(READ * 5)
        await until(lambda: not line.is_busy)
        assert [each.fate for each in reads] == ["answered"] * 5
        assert pool.lent == 1


async def test_a_line_keeps_its_connection_while_it_is_used_and_gives_it_back_then(
    server, timers
):
    async with line_on(server) as (pool, line):
        for _ in range(4 * module.IDLE_LOOKS_MAX):
            read(line)
            await until(lambda: not line.is_busy)
            await timers.fire()
        assert (pool.lent, server.logins) == (1, 1)
        while line.is_held:
            await timers.fire()
        assert (pool.lent, pool.connections) == (0, 1)
        assert await pool.acquire(Tenant(autocommit="ON"), "db")
        assert server.logins == 1


async def test_a_busy_loop_is_not_taken_for_a_slow_server(server, timers):
    async with line_on(server) as (_, line):
        each, backend = read(line), line.connection(0.0)
        # The answer comes late, for the loop was busy; it is there by now, and not read yet.
        await timers.fire()
        await until(lambda: each.fate)
        await timers.fire()
        assert each.fate == "answered"
        assert line.connection(0.0) is backend


async def test_a_line_takes_so_many_reads_and_no_more(server, monkeypatch):
    monkeypatch.setattr(module, "_WAITING_MAX", 2)
    async with line_on(server) as (_, line):
        read(line)
        read(line)
        assert line.connection(0.0) is None
        await until(lambda: not line.is_busy)
        assert line.connection(0.0) is not None


async def test_a_server_that_refuses_is_not_asked_again_at_once(server):
    async with pool_on(server, size=8) as pool:
        line = line_of(lines_of(pool))
        server.refusal = Error(1045, "no")
        for _ in range(5):
            assert line.connection(0.0) is None
            await until(lambda: line.is_unused)
        assert server.logins == 0
        server.refusal = None
        assert line.connection(0.0) is None
        await asyncio.sleep(0)
        assert not line.is_held


async def test_a_line_breaks_up_in_the_middle_of_a_prepare(server, impatient):
    key = StatementKey(b"SELECT slowly", "db", ())
    async with line_on(server) as (pool, line):
        server.on("slowly", Silence())
        line.prepare(line.connection(0.0), key)
        await until(lambda: "PREPARE SELECT slowly" in server.heard)
        waiting = read(line)
        await until(lambda: waiting.fate == "lost")
        await until(lambda: pool.connections == 0)


async def test_releasing_gives_an_unused_connection_back_and_breaks_a_used_one_up(server):
    async with line_on(server) as (pool, line):
        waiting = read(line)
        line.release()
        assert waiting.fate == "taken over, "
        assert not line.is_held
        pool.discard(waiting.backend)
    async with line_on(server) as (pool, line):
        line.release()
        assert (line.is_held, pool.lent, pool.connections) == (False, 0, 1)
        line.release()


async def test_sessions_of_other_variables_or_databases_have_lines_of_their_own_or_none(server):
    off = Settings({"autocommit": "OFF"}.items())
    async with pool_on(server, size=32) as pool:
        lines, unshared = lines_of(pool), lines_of(pool, is_allowed=False)
        line = line_of(lines)
        assert line_of(lines) is line
        others = {
            lines.matching(SHARDS_ACCOUNT, OTHERS, 0, "db"),
            lines.matching(SHARDS_ACCOUNT, SETTINGS, 1, "db"),
            lines.matching(SHARDS_ACCOUNT, SETTINGS, 0, None),
        }
        assert len(others) == 3
        assert not {line, None} & others
        # Reads that may not be shared, or would open a transaction.
        assert unshared.matching(SHARDS_ACCOUNT, SETTINGS, 0, "db") is None
        assert lines.matching(SHARDS_ACCOUNT, off, 0, "db") is None


async def test_there_is_a_line_for_eight_connections_and_an_unused_one_makes_room(server):
    async with pool_on(server, size=16) as pool:
        lines = lines_of(pool)
        made = [await held(lines, name) for name in "ab"]
        assert lines.matching(SHARDS_ACCOUNT, SETTINGS, 0, "c") is None
        made[0].release()
        await held(lines, "c")
        assert lines.matching(SHARDS_ACCOUNT, SETTINGS, 0, "a") is None
        assert lines.matching(SHARDS_ACCOUNT, SETTINGS, 0, "b") is made[1]


@pytest.mark.parametrize(("size", "count"), [(1, 0), (3, 0), (4, 1), (8, 1), (15, 1), (16, 2)])
async def test_a_small_pool_has_no_line(server, size, count):
    async with pool_on(server, size=size) as pool:
        lines = lines_of(pool)
        for name in "abc"[:count]:
            await held(lines, name)
        assert lines.matching(SHARDS_ACCOUNT, SETTINGS, 0, "z") is None


async def test_lines_are_closed_once_a_pool_is_smaller_or_shares_none(server):
    async with pool_on(server, size=16) as pool:
        lines = lines_of(pool)
        made = [await held(lines, name) for name in "ab"]
        pool.resize(8)
        lines.allow(is_allowed=True)
        assert [*lines] == made[:1]
        lines.allow(is_allowed=False)
        assert ([*lines], pool.lent) == ([], 0)


WAY_S = 0.002


def answered(latency, took_s, times):
    for _ in range(times):
        latency.answered(took_s, WAY_S)


def test_a_shape_is_quick_once_it_has_shown_it_often_enough_and_more_often_behind_a_slow_one():
    latency = LatencyClass()
    for times, is_quick in ((FIRST_TRIAL - 1, False), (1, True)):
        answered(latency, WAY_S, times)
        assert latency.is_quick is is_quick
    latency.was_slow()
    for times, is_quick in ((0, False), (FIRST_TRIAL, False), (3 * FIRST_TRIAL, True)):
        answered(latency, WAY_S, times)
        assert latency.is_quick is is_quick
    for took_s in (WAY_S + 2 * QUICK_S, math.inf):
        slow = LatencyClass()
        answered(slow, took_s, 10 * FIRST_TRIAL)
        assert not slow.is_quick
