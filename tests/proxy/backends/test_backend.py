from __future__ import annotations

import asyncio

import pytest

from streamfrom.proxy.backends.statement_ids import StatementKey
from streamfrom.proxy.errors import BackendError, BackendLost
from streamfrom.proxy.wire.commands import query
from tests.proxy.backends.pools import opened
from tests.proxy.fake_answers import Bytes, Error, Silence, rows_of, until


NO_ROLES = Error(1305, "FUNCTION db.CURRENT_ROLE does not exist")


@pytest.fixture
async def backend(server):
    made = await opened(server)
    yield made
    made.close()


class Reader:
    """Takes whole answers of one packet, and says what it was told."""

    def __init__(self):
        self.told = []

    def data_received(self, data):
        size = 4 + int.from_bytes(data[:3], "little")
        self.told.append(data[:size])
        return data[size:]

    def answer_completed(self):
        self.told.append("ended")

    def connection_lost(self, error):
        self.told.append(type(error))


async def test_a_pipeline_answers_in_order_and_raises_the_first_refusal_at_its_end(
    server, backend
):
    server.on("two", rows_of(2))
    first, second = await backend.pipeline([query(b"SELECT 1"), query(b"SELECT two")])
    assert (first.rows, second.rows) == ([b"\x011"], [b"\x012"])
    server.on("bad", Error(1064, "first"))
    server.on("worse", Error(1064, "second"))
    with pytest.raises(BackendError, match="first"):
        await backend.pipeline([query(q) for q in (b"bad", b"SELECT 1", b"worse")])
    assert server.heard[-3:] == ["bad", "SELECT 1", "worse"]
    assert not backend.is_busy


async def test_who_sends_into_a_lost_connection_is_told_and_does_not_wait_for_ever(
    server, backend
):
    server.break_connections()
    await until(lambda: backend.is_closed)
    reader = Reader()
    backend.send(query(b"DO 1"), reader)
    assert reader.told == []  # not before its sender is ready to hear it
    await until(lambda: reader.told == [BackendLost])


async def test_bytes_that_make_no_sense_or_come_unasked_close_the_connection(server):
    backend = await opened(server)
    server.once("SELECT", Bytes(b"\x01\x00\x00\x01\xfb"))
    with pytest.raises(BackendLost):
        await backend.query(b"SELECT 1")
    assert backend.is_closed
    backend = await opened(server)
    server.relays[-1].say(b"\x05\x00\x00\x00\xff\x10\x04no")
    await until(lambda: backend.is_closed)


async def test_a_cancelled_statement_takes_its_connection_with_it(server, backend):
    server.once("SLEEP", Silence())
    running = asyncio.ensure_future(backend.query(b"SELECT SLEEP(9)"))
    await until(lambda: "SELECT SLEEP(9)" in server.heard)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert backend.is_closed


async def test_closing_says_goodbye_and_aborting_does_not(server):
    polite, rude = await opened(server), await opened(server)
    polite.close()
    polite.close()
    rude.abort()
    await until(lambda: not server.connections)
    assert server.heard.count("QUIT") == 1


TOO_MANY = Error(1461, "Can't create more than max_prepared_stmt_count statements", "42000")


def statement_key(text):
    return StatementKey(text, "db", ())


async def test_where_the_server_has_too_many_statements_those_kept_here_make_room(
    server, backend
):
    server.once("PREPARE SELECT 3", TOO_MANY)
    with pytest.raises(BackendError, match="max_prepared_stmt_count"):
        await backend.prepare(statement_key(b"SELECT 3"))  # none is kept
    for text in (b"SELECT 1", b"SELECT 2"):
        await backend.prepare(statement_key(text))
    server.once("PREPARE SELECT 3", TOO_MANY)
    await backend.prepare(statement_key(b"SELECT 3"))
    assert server.heard[-3:] == ["CLOSE SELECT 1", "CLOSE SELECT 2", "PREPARE SELECT 3"]
    assert len(backend.statements) == 1
    server.on("PREPARE SELECT 4", TOO_MANY)
    with pytest.raises(BackendError, match="max_prepared_stmt_count"):
        await backend.prepare_apart(b"SELECT 4")
    assert (await backend.query(b"SELECT 1")).rows


@pytest.mark.parametrize(
    ("at_login", "later", "is_kept"),
    [
        (rows_of("reader"), rows_of("reader"), True),
        (rows_of("reader"), rows_of("NONE"), False),
        (rows_of("reader"), Error(1317, "Query execution was interrupted"), False),
        (NO_ROLES, NO_ROLES, False),
    ],
    ids=["the same", "another", "not known", "a server without roles"],
)
async def test_roles_are_those_of_the_login_until_they_may_have_changed(
    server, at_login, later, is_kept
):
    server.on("CURRENT_ROLE()", at_login)
    backend = await opened(server)
    server.on("CURRENT_ROLE()", later)
    assert await backend.has_login_role()
    backend.may_have_role = True
    assert await backend.has_login_role() == is_kept
    backend.close()
