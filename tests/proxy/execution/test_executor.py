"""How one statement gets a connection, and its client the answer."""

from __future__ import annotations

import asyncio
from typing import Any

from streamfrom.proxy.backends.statement_ids import StatementKey
from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.execution.attempt import Attempt
from streamfrom.proxy.execution.prepared_execution import Execution
from streamfrom.proxy.execution.reply import Reply
from streamfrom.proxy.wire.commands import query
from tests.proxy.fake_answers import Error, Silence, rows_of, until
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
