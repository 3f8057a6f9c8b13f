"""What a session has of a read on a shared connection, and what it never has from there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streamfrom.proxy.backends.pooling import multiplexing
from streamfrom.proxy.backends.pooling.multiplexing import LatencyClass
from streamfrom.proxy.backends.statement_ids import StatementKey
from streamfrom.proxy.execution import shared_reads as module
from streamfrom.proxy.execution.attempt import Attempt
from streamfrom.proxy.execution.prepared_execution import Execution
from streamfrom.proxy.execution.reply import Reply
from streamfrom.proxy.wire.commands import query
from tests.proxy.fake_answers import HANG_S, Error, HangUp, Rows, Silence, rows_of, until
from tests.proxy.fake_client import read_result
from tests.proxy.rigs import SessionRig, running_shard
from tests.sqlparse_ext.facts import shape


READ = "SELECT id FROM t WHERE id = 1"


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(multiplexing, "_PATIENCE_S", HANG_S)


@pytest.fixture
async def company(server):
    """A shard on which somebody is busy, so that quick reads are sent together."""
    async with running_shard(server, pool_size=8) as shard:
        busy = SessionRig(shard)
        await busy.run("SET @a = 1")
        yield shard
        await busy.leave()


class Reader:
    """A session that sends quick reads."""

    def __init__(self, shard):
        self.session = SessionRig(shard)
        self.shard = shard
        self.latency = LatencyClass()
        self.latency.is_quick = True
        self.outcome: Any = None

    def send(self, packet=None):
        self.at = len(self.session.link.written)
        self.outcome = None
        reply = Reply(self.session.link.link, self.session.state, 1)
        packet = packet or query(READ.encode())
        attempt = Attempt(self.shard, "db", packet, shape(READ), reply, self.over, self.latency)
        assert self.session.executor.send_now(attempt)

    def over(self, outcome):
        self.outcome = outcome

    async def read(self, packet=None):
        """Read once; return what the client was sent, or "again"."""
        self.send(packet)
        await until(lambda: self.outcome)
        assert self.outcome.backend.owner is not self.session.state
        return self.finish()

    async def read_apart(self, packet=None):
        """Read once, on a connection of the session's own."""
        self.send(packet)
        await until(lambda: self.outcome)
        assert self.outcome.backend.owner is self.session.state
        self.finish()

    def finish(self):
        if not self.session.executor.finish(self.outcome):
            return "again"
        return read_result(
            bytes(self.session.link.written[self.at :]), self.session.state.capabilities
        )

    async def leave(self):
        await self.session.leave()


@pytest.fixture
async def reader(company):
    made = Reader(company)
    await made.read_apart()  # there is no shared connection yet
    await until(lambda: any(shared.is_held for shared in company.shared_connections))
    yield made
    await made.leave()


@pytest.fixture
async def other(company):
    made = Reader(company)
    yield made
    await made.leave()


@pytest.mark.parametrize(
    "answer",
    [Error(1054), Rows(("id",), ((b"1",),), warnings=1), HangUp(rows_of(1), 20)],
    ids=["error", "warnings", "broken off"],
)
async def test_what_leaves_something_behind_or_breaks_off_is_read_again_apart(
    server, company, reader, answer
):
    server.once("FROM t", answer)
    assert await reader.read() == "again"
    assert reader.session.link.written[reader.at :] == b""
    backend = reader.outcome.backend
    assert backend.is_closed if isinstance(answer, HangUp) else backend.has_residue


async def test_a_long_answer_takes_the_connection_over_and_streams(
    server, reader, other, monkeypatch
):
    monkeypatch.setattr(module, "HELD_BYTES_MAX", 1000)
    server.once("FROM t", Rows(("id",), ((b"x" * 100_000,),) * 30))
    reader.send()
    other.send()
    await until(lambda: reader.outcome and other.outcome)
    assert other.finish() == "again"
    attempt = reader.outcome
    assert (attempt.has_written, attempt.failure) == (True, None)
    assert attempt.backend.owner is reader.session.state
    assert len(reader.finish().values) == 30
    assert not reader.latency.is_quick


async def test_warnings_that_the_reads_behind_clear_are_read_again(
    server, company, reader, other
):
    gate = asyncio.Event()
    server.once("FROM t", Silence(gate, Rows(("id",), ((b"1",),), warnings=1)))
    reader.send()
    other.send()
    await until(lambda: READ in server.heard)
    (shared,) = company.shared_connections
    lent = company.pool.lent
    shared.break_up()
    gate.set()
    await until(lambda: reader.outcome and other.outcome)
    assert (other.finish(), reader.finish()) == ("again", "again")
    assert reader.session.link.written[reader.at :] == b""
    assert company.pool.lent == lent - 1


async def test_a_read_that_hangs_can_be_killed_and_those_behind_it_go_on(server, reader, other):
    server.once("FROM t", Silence())
    reader.send()
    other.send()
    await until(lambda: READ in server.heard)
    await asyncio.gather(*reader.session.executor.interrupt())
    await until(lambda: reader.outcome and other.outcome)
    assert other.finish() == "again"
    assert reader.finish().code == 1317


async def test_a_read_behind_one_that_hangs_is_not_killed_but_begins_anew(
    server, reader, other
):
    server.once("FROM t", Silence())
    other.send()
    reader.send()
    assert reader.session.executor.interrupt() == []
    await until(lambda: reader.outcome)
    assert reader.finish() == "again"
    assert other.outcome is None


async def test_a_session_that_leaves_in_the_middle_of_its_read_disturbs_nobody(
    server, reader, other
):
    gate = asyncio.Event()
    server.once("FROM t", Silence(gate, rows_of(1)), rows_of(2))
    other.send()
    reader.send()
    await other.leave()
    gate.set()
    await until(lambda: reader.outcome)
    assert reader.finish().values == [b"2"]
    assert other.session.link.written == b""


async def test_a_slow_read_of_a_session_that_left_is_killed(server, company, reader, other):
    server.once("FROM t", Silence())
    other.send()
    reader.send()
    await other.leave()
    (shared,) = company.shared_connections
    shared.break_up()
    await until(lambda: reader.outcome)
    assert reader.finish() == "again"
    await until(lambda: any("KILL" in each for each in server.controlled))


async def test_an_execution_is_prepared_on_the_shared_connection_first(server, company, reader):
    key = StatementKey(READ.encode(), "db", ())
    execution = Execution(key, b"", 0)
    await reader.read_apart(execution)
    (shared,) = company.shared_connections
    await until(lambda: shared.connection(0.0).statements.get(key))
    await reader.read(execution)
    assert server.heard.count(f"PREPARE {READ}") == 2


async def test_an_execution_that_the_server_has_forgotten_is_prepared_anew(
    server, company, reader
):
    key = StatementKey(READ.encode(), "db", ())
    (shared,) = company.shared_connections
    backend = shared.connection(0.0)
    await backend.prepare(key)
    server.once(READ, Error(1243))
    assert await reader.read(Execution(key, b"", 0)) == "again"
    assert backend.statements.get(key) is None


async def test_without_company_a_read_goes_on_the_sessions_own_connection(server):
    async with running_shard(server, pool_size=8) as shard:
        alone = Reader(shard)
        for _ in range(3):
            await alone.read_apart()
        assert server.logins == 1
        await alone.leave()


async def test_a_long_statement_keeps_a_read_off_the_shared_connection(server, company, reader):
    values = ", ".join(map(str, range(2000)))
    await reader.read_apart(query(f"SELECT id FROM t WHERE id IN ({values})".encode()))
    await reader.read(query(b"SELECT id FROM t WHERE id IN (1, 2)"))


@pytest.fixture
def eager(monkeypatch):
    """A shared connection that is missed is opened at once."""
    monkeypatch.setattr(multiplexing, "_REOPEN_S", 0.0)


async def test_sessions_that_shared_share_no_more_once_their_shard_forbids_it(
    eager, company, reader
):
    await reader.read()
    (shared,) = company.shared_connections
    company.shared_connections.allow(is_allowed=False)
    await reader.read_apart()
    assert shared.is_unused
