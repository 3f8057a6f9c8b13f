"""What a session does about its limits: statements that take too long, clients that are silent."""

import pytest

from proxy.config.file import Role, Secret, User
from proxy.wire.resultset import Tracker
from tests.proxy.fake_answers import Error, Ok, Rows, Silence, rows_of, until
from tests.proxy.fake_client import MODERN, OLD, Refused
from tests.proxy.fake_server import FakeServer
from tests.proxy.house import add_message_table, running_proxy
from tests.proxy.sessions.test_session import EVE, refused


APP = User("app", Secret(""), None, Role.READWRITE, None, 1)


@pytest.fixture
async def house(server, other_server):
    async with running_proxy(server, other_server, statement_timeout_s=0.1) as made:
        yield made


@pytest.mark.parametrize("capabilities", [MODERN, OLD])
@pytest.mark.parametrize("prepared", [False, True])
async def test_a_statement_that_takes_too_long_is_stopped_on_its_server(
    server, house, capabilities, prepared
):
    client = await house.client(capabilities=capabilities)
    statement, *_ = await client.prepare("SELECT SLEEP(9)")
    server.once("SLEEP", Silence())
    if prepared:
        result = await client.execute(statement)
    else:
        result = await client.query("SELECT SLEEP(9)")
    assert (result.code, result.message) == (
        3024,
        "Query execution was interrupted, maximum statement execution time exceeded",
    )
    assert any(text.startswith("KILL QUERY") for text in server.controlled)
    assert (await client.query("SELECT 1")).values == [b"1"]


async def test_a_write_that_was_stopped_says_so_too(server, house):
    client = await house.client()
    server.once("UPDATE", Silence())
    assert (await client.query("UPDATE t SET a = 1")).code == 3024


async def test_a_write_to_several_shards_that_was_stopped_is_undone(
    server, other_server, house
):
    client = await house.client("commerce")
    other_server.once("DELETE", Silence())
    assert (await client.query("DELETE FROM t")).code == 3024
    assert "ROLLBACK" in server.heard


async def test_a_server_that_makes_an_answer_of_the_interruption_does_not_count(server, house):
    client = await house.client()
    killed = Silence(answer=rows_of(1))
    server.once("SLEEP", killed)
    client.send("SELECT SLEEP(9)")
    await until(lambda: any(text.startswith("KILL QUERY") for text in server.controlled))
    # As MySQL does for SLEEP: no error, but a row.
    gate = killed.gate
    assert gate is None
    assert (await client.answer())[0].code == 3024


async def test_a_write_that_succeeded_all_the_same_is_not_denied(server, house, monkeypatch):
    from tests.proxy import fake_connection

    async def succeeds(self, _gate, answer):
        self.was_killed.clear()
        await self.was_killed.wait()
        return answer

    monkeypatch.setattr(fake_connection.Connection, "_silence", succeeds)
    client = await house.client()
    server.once("UPDATE", Silence(answer=Ok(affected_rows=3)))
    result = await client.query("UPDATE t SET a = 1")
    assert result.error is None
    server.once("SLEEP", Silence(answer=rows_of(1)))
    assert (await client.query("SELECT SLEEP(9)")).code == 3024


@pytest.mark.parametrize("capabilities", [MODERN, OLD])
async def test_an_error_behind_some_rows_is_the_right_one(server, house, capabilities):
    client = await house.client(capabilities=capabilities)
    answer = Rows(("a",), ((b"1",),), then=Error(1317, "Query execution was interrupted"))
    server.once("SELECT a", Silence(answer=answer))
    client.send("SELECT a FROM t")
    connection = await _busy(server)
    connection.was_killed.clear()
    result = (await client.answer())[0]
    assert result.code == 3024
    assert (await client.query("SELECT 1")).values == [b"1"]


async def _busy(server):
    await until(lambda: "SELECT a FROM t" in server.heard)
    return next(c for c in server.relays if "SELECT a FROM t" in c.heard)


async def test_a_server_that_cannot_be_stopped_loses_its_connection(server, house, monkeypatch):
    from proxy.sessions import turns

    monkeypatch.setattr(turns, "STOP_S", 0.05)
    server.once("KILL QUERY", *[Ok()] * 9)
    server.once("UPDATE", Silence())
    client = await house.client()
    result = await client.query("UPDATE t SET a = 1")
    assert result.code == 1105
    assert "whether it took effect is unknown" in result.message


async def left(client):
    """The error that a client is told unasked before its connection closes."""
    # It begins a sequence of its own.
    client._framer.next_sequence = 0
    error = await refused(client.packet())
    assert await client.is_closed()
    return error.code


async def test_a_stream_takes_as_long_as_it_likes(server, other_server):
    add_message_table(server)
    async with running_proxy(server, statement_timeout_s=0.05, idle_timeout_s=0.05) as house:
        client = await house.client()
        client.send("STREAM * FROM msg")
        assert await client.head() == 2
        other = await house.client()
        assert await left(other) == 4031
        assert house.app._sessions.keys() == {client.greeting.connection_id}
        client.vanish()


async def test_a_silent_client_is_told_and_left(server):
    async with running_proxy(server, idle_timeout_s=0.1) as house:
        client = await house.client()
        await client.query("BEGIN")
        assert server.relays[0].in_transaction
        assert await left(client) == 4031
        await until(lambda: not any(c.in_transaction for c in server.relays))


async def test_who_is_busy_is_not_silent(server):
    async with running_proxy(server, idle_timeout_s=0.1) as house:
        client, other = await house.client(), await house.client()
        server.once("SLEEP", Silence(answer=rows_of(1)))
        client.send("SELECT SLEEP(9)")
        assert await left(other) == 4031
        assert house.app._sessions.keys() == {client.greeting.connection_id}


async def test_a_user_with_a_limit_gets_no_more_connections(server):
    async with running_proxy(server, users=(APP, EVE)) as house:
        first = await house.client(user="app", password="")
        error = await refused(house.client(user="app", password=""))
        assert (error.code, error.sqlstate) == (1226, "42000")
        await house.client(user="eve", password="sesame")
        first.vanish()
        await until(lambda: len(house.app._sessions) == 1)
        again = await house.client(user="app", password="")
        assert (await again.query("SELECT 1")).values == [b"1"]


async def test_refusals_wait_longer_and_longer_and_good_logins_of_others_do_not(server):
    async with running_proxy(server, users=(APP, EVE), auth_backoff_s=0.1) as house:
        for _ in range(4):
            with pytest.raises(Refused):
                await house.client(user="eve", password="wrong")
        assert house.app._services.backoff.failed("127.0.0.1", "x", 0.0) == 0.1
        await house.client(user="app", password="")
        client = await house.client(user="eve", password="sesame")
        assert (await client.query("SELECT 1")).values == [b"1"]


async def test_mariadb_leaves_a_client_after_its_own_limit_without_a_word():
    async with FakeServer("10.11.6-MariaDB") as server, running_proxy(server) as house:
        server.on("SET wait_timeout", Ok(trackers=(Tracker(0, "wait_timeout", "1"),)))
        client = await house.client()
        await client.query("SET wait_timeout = 1")
        assert await client.is_closed()


async def test_a_client_limits_its_own_silence(server):
    server.on("SET wait_timeout", Ok(trackers=(Tracker(0, "wait_timeout", "1"),)))
    async with running_proxy(server) as house:
        client, other = await house.client(), await house.client()
        await client.query("SET wait_timeout = 1")
        await other.query("SELECT 1")
        assert await left(client) == 4031
        assert (await other.query("SELECT 1")).values == [b"1"]
