"""How one statement gets a connection, and its client the answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streamfrom.proxy.backends.statement_ids import StatementKey
from streamfrom.proxy.errors import BackendError, BackendLost, SessionLost
from streamfrom.proxy.execution.attempt import Attempt
from streamfrom.proxy.execution.prepared_execution import Execution
from streamfrom.proxy.execution.reply import Reply
from streamfrom.proxy.wire.commands import query
from tests.cases import cases
from tests.proxy.fake_answers import Error, HangUp, Silence, rows_of, until
from tests.sqlparse_ext.facts import shape


def send_now(session, sql, on_done, database="db"):
    reply = Reply(session.link.link, session.state, 1)
    packet = query(sql.encode())
    return session.executor.send_now(
        Attempt(session.shards[0], database, packet, shape(sql), reply, on_done)
    )


async def test_an_execution_that_cannot_be_prepared_is_told_so(server, shard, session):
    await session.run("SELECT 1")
    server.once("FROM gone", Error(1146, "no such table"))
    packet = Execution(
        StatementKey(b"SELECT id FROM gone", "db", session.state.settings.reading), b"", 0
    )
    done: list[Any] = []
    reply = Reply(session.link.link, session.state, 1)
    attempt = Attempt(shard, "db", packet, shape("SELECT id FROM gone"), reply, done.append)
    assert session.executor.send_now(attempt)
    await until(lambda: done)
    assert isinstance(done[0], BackendError)
    assert shard.pool.lent == 0
    assert not session.executor.interrupt()


async def test_a_kill_under_way_never_meets_another_sessions_statement(server, shard, session):
    gate = asyncio.Event()
    server.once("SLEEP", Silence(gate, rows_of(0)))
    server.on("KILL", Silence(gate))
    running = asyncio.ensure_future(session.run("SELECT SLEEP(9)"))
    await until(lambda: "SELECT SLEEP(9)" in server.heard)
    session.executor.interrupt()
    await until(lambda: any("KILL" in text for text in server.controlled))
    gate.set()
    await running
    assert shard.pool.connections == 0


# A statement meets a server that is away, refuses, or breaks off: what is tried again, and what never.
async def test_a_write_whose_bytes_have_left_is_never_sent_twice(server, shard, session):
    server.once("INSERT INTO", HangUp())
    with pytest.raises(BackendLost, match="whether it took effect is unknown"):
        await session.run("INSERT INTO t VALUES (1)")
    assert server.heard.count("INSERT INTO t VALUES (1)") == 1
    assert shard.pool.connections == 0


@cases(sql=str)
async def test_reads_that_leave_something_are_no_reads(server, session, sql):
    server.once(sql, HangUp())
    with pytest.raises(BackendLost):
        await session.run(sql)
    assert server.heard.count(sql) == 1


async def test_a_session_whose_own_state_was_lost_while_idle_is_over_too(
    server, shard, session
):
    await session.run("SET @a = 1")
    server.break_connections()
    await until(lambda: session.branches.held[shard].is_closed)
    with pytest.raises(SessionLost):
        await session.run("SELECT 1")


async def ask(session, sql):
    return await session.executor.ask(session.shards, "db", query(sql.encode()), shape(sql))


async def test_a_write_that_is_asked_is_sent_once(server, session):
    server.once("ALTER", HangUp())
    with pytest.raises(BackendLost):
        await ask(session, "ALTER TABLE t ADD b INT")
    assert server.heard.count("ALTER TABLE t ADD b INT") == 1


async def test_a_question_that_somebody_stopped_is_not_asked_again(server, session):
    server.on("FROM t", Silence())
    running = asyncio.ensure_future(ask(session, "SELECT id FROM t"))
    await until(lambda: "SELECT id FROM t" in server.heard)
    session.executor.connections.break_off()
    with pytest.raises(BackendLost):
        await running
    assert server.heard.count("SELECT id FROM t") == 1
