import asyncio

import pytest

from proxy.backends import backend as module
from proxy.backends.backend import Backend
from proxy.backends.settings import Settings, names
from proxy.config.dsn import SslMode
from proxy.config.values import Secret
from proxy.errors import BackendError, BackendLost, BackendUnavailable
from proxy.wire.commands import query
from tests.proxy.fake_server import (
    MARIADB,
    PASSWORD,
    Bytes,
    Error,
    FakeServer,
    HangUp,
    Ok,
    Rows,
    Silence,
    rows_of,
    until,
)


class Tenant:
    """A session, as far as a connection knows it."""

    settings = Settings()
    variant = 0

    def evicted(self, backend, last_insert_id):
        pass

    def leaves(self, backend, left):
        return False


ANN, BOB = Tenant(), Tenant()


async def opened(server, database="db", variant=0, **dsn):
    return await Backend.open("ks", "-", server.dsn(**dsn), database=database, variant=variant)


class Reader:
    """Takes whole answers of one packet, and says what it was told."""

    def __init__(self):
        self.told = []

    def feed(self, data):
        size = 4 + int.from_bytes(data[:3], "little")
        self.told.append(data[:size])
        return data[size:]

    def ended(self):
        self.told.append("ended")

    def lost(self, error):
        self.told.append(type(error))


# --- opening ---------------------------------------------------------------------------


async def test_a_login_leaves_a_connection_that_reports_what_sessions_change(server):
    backend = await opened(server, user="app")
    (connection,) = server.relays
    assert connection.database == backend.database == "db"
    assert backend.thread_id == connection.id
    assert "transaction_isolation" in connection.variables["session_track_system_variables"]
    assert backend.settings is Settings()
    assert not any((backend.is_busy, backend.is_closed, backend.in_transaction))
    backend.close()


async def test_mariadb_is_asked_for_its_own_variables(calm):
    async with FakeServer(MARIADB) as server:
        backend = await opened(server)
        tracked = server.relays[0].variables["session_track_system_variables"].split(",")
        assert "tx_isolation" in tracked
        backend.close()


async def test_a_wrong_password_is_the_servers_error_and_names_no_secret(server):
    with pytest.raises(BackendError, match="Access denied for user 'app'") as refused:
        await opened(server, user="app", password=Secret("not-the-secret"))
    assert refused.value.wire_code() == (1045, "28000")
    assert "not-the-secret" not in str(refused.value)
    await until(lambda: not server.connections)


async def test_a_server_that_does_not_listen_is_unavailable_and_the_reason_has_no_secret(
    server,
):
    server.stop()
    with pytest.raises(
        BackendUnavailable, match=r"mysql://app@127\.0\.0\.1:\d+/db: "
    ) as failed:
        await opened(server, user="app")
    assert PASSWORD not in str(failed.value)


async def test_a_server_that_is_full_says_so_itself(server):
    server.refusal = Error(1040, "Too many connections", "08004")
    with pytest.raises(BackendError, match="Too many connections"):
        await opened(server)


async def test_a_server_that_breaks_off_the_login_is_unavailable(server):
    server.greets = False
    opening = asyncio.ensure_future(opened(server))
    await until(lambda: server.connections)
    server.break_connections()
    with pytest.raises(BackendUnavailable, match="gone in the login"):
        await opening


async def test_a_server_that_never_greets_is_unavailable(server, monkeypatch):
    server.greets = False
    monkeypatch.setattr(module, "CONNECT_TIMEOUT_S", 0.02)
    with pytest.raises(BackendUnavailable, match="login timed out"):
        await opened(server)
    await until(lambda: not server.connections)


async def test_a_server_that_talks_nonsense_is_unavailable_and_no_fault_of_the_client(server):
    server.greets = False
    opening = asyncio.ensure_future(opened(server))
    await until(lambda: server.connections)
    next(iter(server.connections.values())).say(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(BackendUnavailable, match="out of order"):
        await opening
    await until(lambda: not server.connections)


async def test_a_server_that_refuses_to_track_is_not_used(server):
    server.on("session_track_system_variables", Error(1231, "can't be set to the value of 'x'"))
    with pytest.raises(BackendError, match="can't be set"):
        await opened(server)
    await until(lambda: not server.connections)


async def test_tls_is_not_given_up_where_it_is_required(server):
    with pytest.raises(BackendError, match="TLS is required but the server has none"):
        await opened(server, ssl_mode=SslMode.REQUIRED)


async def test_tls_is_done_without_where_it_is_only_preferred(server):
    backend = await opened(server, ssl_mode=SslMode.PREFERRED)
    assert (await backend.run(b"SELECT 1")).rows
    backend.close()


# --- statements ------------------------------------------------------------------------


async def test_an_answer_has_columns_rows_and_the_ok(server):
    server.on("FROM t", Rows(("a", "b"), ((b"1", None), (b"2", b"x")), warnings=3))
    backend = await opened(server)
    answer = await backend.run(b"SELECT a, b FROM t")
    assert len(answer.columns) == 2
    assert answer.rows == [b"\x011\xfb", b"\x012\x01x"]
    assert answer.ok is not None
    assert answer.ok.warnings == 3
    backend.close()


async def test_a_refusal_keeps_the_servers_code_state_and_words(server):
    server.on("FROM t", Error(1146, "Table 'db.t' doesn't exist", "42S02"))
    backend = await opened(server)
    with pytest.raises(BackendError, match=r"^Table 'db\.t' doesn't exist$") as refused:
        await backend.run(b"SELECT * FROM t")
    assert refused.value.wire_code() == (1146, "42S02")
    assert (await backend.run(b"SELECT 1")).rows == [b"\x011"]
    backend.close()


async def test_rows_that_end_in_an_error_are_a_refusal(server):
    server.on("FROM t", Rows(("a",), ((b"1",),), then=Error(1317, "interrupted", "70100")))
    backend = await opened(server)
    with pytest.raises(BackendError, match="interrupted"):
        await backend.run(b"SELECT a FROM t")
    backend.close()


async def test_a_pipeline_answers_in_order_and_raises_the_first_refusal_at_its_end(server):
    backend = await opened(server)
    server.on("two", rows_of(2))
    first, second = await backend.pipeline([query(b"SELECT 1"), query(b"SELECT two")])
    assert (first.rows, second.rows) == ([b"\x011"], [b"\x012"])
    server.on("bad", Error(1064, "first"))
    server.on("worse", Error(1064, "second"))
    with pytest.raises(BackendError, match="first"):
        await backend.pipeline([query(q) for q in (b"bad", b"SELECT 1", b"worse")])
    assert server.heard[-3:] == ["bad", "SELECT 1", "worse"]
    assert not backend.is_busy
    backend.close()


async def test_readers_are_served_in_the_order_of_their_commands(server):
    backend = await opened(server)
    first, second = Reader(), Reader()
    backend.send(query(b"DO 1"), first)
    backend.send(query(b"DO 2"), second)
    assert backend.is_busy
    await until(lambda: len(second.told) == 2)
    assert [told if isinstance(told, str) else len(told) for told in first.told] == [
        11,
        "ended",
    ]
    assert not backend.is_busy
    backend.close()


async def test_everybody_who_waits_learns_that_the_connection_is_lost(server):
    backend = await opened(server)
    gone: list[Backend] = []
    backend.on_lost(gone.append)
    reader = Reader()
    server.once("SLEEP", HangUp())
    running = asyncio.ensure_future(backend.run(b"SELECT SLEEP(1)"))
    await asyncio.sleep(0)
    backend.send(query(b"DO 1"), reader)
    with pytest.raises(BackendLost, match="lost the connection to shard '-' of keyspace 'ks'"):
        await running
    assert reader.told == [BackendLost]
    assert gone == [backend]
    assert backend.is_closed
    with pytest.raises(BackendLost):
        await backend.run(b"SELECT 1")


async def test_who_sends_into_a_lost_connection_is_told_and_does_not_wait_for_ever(server):
    backend = await opened(server)
    server.break_connections()
    await until(lambda: backend.is_closed)
    reader = Reader()
    backend.send(query(b"DO 1"), reader)
    assert reader.told == []  # not before its sender is ready to hear it
    await until(lambda: reader.told == [BackendLost])


async def test_bytes_that_make_no_sense_close_the_connection(server):
    backend = await opened(server)
    server.once("SELECT", Bytes(b"\x01\x00\x00\x01\xfb"))
    with pytest.raises(BackendLost):
        await backend.run(b"SELECT 1")
    assert backend.is_closed


async def test_a_server_that_speaks_unasked_is_left(server):
    backend = await opened(server)
    server.relays[0].say(b"\x05\x00\x00\x00\xff\x10\x04no")
    await until(lambda: backend.is_closed)


async def test_a_cancelled_statement_takes_its_connection_with_it(server):
    backend = await opened(server)
    server.once("SLEEP", Silence())
    running = asyncio.ensure_future(backend.run(b"SELECT SLEEP(9)"))
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


# --- changing hands --------------------------------------------------------------------


async def test_the_same_owner_finds_everything_as_it_left_it(server):
    backend = await opened(server)
    await backend.adopt(ANN, Settings(), "db")
    backend.has_residue = True
    heard = len(server.heard)
    await backend.adopt(ANN, Settings(), "db")
    assert server.heard[heard:] == []


async def test_variables_are_only_added_without_a_reset(server):
    backend = await opened(server)
    await backend.adopt(ANN, names("latin1", "latin1_bin"), "db")
    heard = len(server.heard)
    more = names("latin1", "latin1_bin").with_changes([("time_zone", "UTC")])
    await backend.adopt(ANN, more, "db")
    assert server.heard[heard:] == ["SET @@session.time_zone = 'UTC'"]
    assert backend.settings is more
    backend.close()


async def test_a_variable_too_many_takes_a_reset_and_everything_is_said_again(server):
    backend = await opened(server)
    await backend.adopt(ANN, names("latin1", "latin1_bin"), "db")
    await backend.adopt(BOB, Settings([("time_zone", "UTC")]), "other")
    (connection,) = server.relays
    assert connection.heard[-4] == "RESET"
    assert "session_track" in connection.heard[-3]
    assert connection.heard[-2:] == ["SET @@session.time_zone = 'UTC'", "INIT_DB other"]
    assert {k: v for k, v in connection.variables.items() if "track" not in k} == {
        "time_zone": "UTC"
    }
    assert (backend.database, connection.database) == ("other", "other")
    backend.close()


async def test_residue_is_for_its_owner_alone(server):
    backend = await opened(server)
    await backend.adopt(ANN, Settings(), "db")
    backend.has_residue = True
    assert backend.fits(ANN, Settings(), "db")
    assert not backend.fits(BOB, Settings(), "db")
    await backend.adopt(BOB, Settings(), "db")
    assert "RESET" in server.heard
    assert not backend.has_residue
    assert backend.owner is BOB
    backend.close()


@pytest.mark.parametrize("step", ["RESET", "session_track", "time_zone", "INIT_DB"])
async def test_a_connection_that_could_not_be_made_anothers_is_closed(server, step):
    backend = await opened(server)
    await backend.adopt(ANN, names("latin1", "latin1_bin"), "db")
    server.on(step, Error(1049, "no"))
    with pytest.raises(BackendError):
        await backend.adopt(BOB, Settings([("time_zone", "UTC")]), "other")
    assert backend.is_closed


async def test_trackers_are_followed(server):
    backend = await opened(server)
    for sql in (b"USE shop", b"SET sql_mode = 'ANSI'"):
        answer = await backend.run(sql)
        assert answer.ok is not None
        backend.note(answer.ok.trackers)
    assert backend.database == "shop"
    assert backend.settings is Settings([("sql_mode", "ANSI")])
    backend.close()


async def test_the_last_insert_id_is_the_servers_own(server):
    backend = await opened(server)
    server.once("INSERT", Ok(last_insert_id=1 << 40))
    await backend.run(b"INSERT INTO t VALUES ()")
    assert await backend.last_insert_id() == 1 << 40
    backend.close()
