import ast
import asyncio

import pytest

from streamfrom.proxy.wire.constants import Status, TrackerKind
from streamfrom.proxy.wire.framing import frame
from streamfrom.proxy.wire.resultset import Tracker
from tests.cases import cases
from tests.proxy.fake_answers import Ok, Silence, until
from tests.proxy.fake_client import OLD


PING, STATISTICS, DEBUG, RESET = b"\x0e", b"\x09", b"\x0d", b"\x1f"


async def test_the_small_commands(server, proxy):
    client = await proxy.client()
    assert (await client.command(PING)).ok is not None
    assert (await client.command(DEBUG)).ok is not None
    assert (await client.command(b"\x02plain:-")).ok is not None
    assert (await client.command(b"\x02nowhere")).code == 1049
    client.write(frame(STATISTICS, 0))
    assert (await client.packet(1)).startswith(b"Uptime: ")
    client.write(frame(b"\x19\x01\0\0\0", 0))  # COM_STMT_CLOSE is not answered
    assert (await client.command(PING)).ok is not None


async def test_a_change_of_database_is_told_to_who_tracks_it(proxy):
    client = await proxy.client()
    for payload, name in ((b"\x02commerce", "commerce"), (b"\x03USE `plain:-`", "plain:-")):
        ok = (await client.command(payload)).ok
        assert ok is not None
        assert ok.trackers == (Tracker(TrackerKind.SCHEMA, "", name),)
    old = await proxy.client(capabilities=OLD)
    ok = (await old.command(b"\x02commerce")).ok
    assert ok is not None
    assert not ok.session_state


async def test_changes_of_variables_are_told_as_a_server_does(server, proxy):
    client = await proxy.client()
    ok = (await client.query("SET autocommit = 0")).ok
    assert ok is not None
    assert ok.trackers == (Tracker(TrackerKind.SYSVAR, "autocommit", "OFF"),)
    ok = (await client.query("SET sql_mode = 'ANSI'")).ok
    assert ok is not None
    assert not ok.trackers
    await client.query("SET session_track_system_variables = 'sql_mode'")
    ok = (await client.query("SET sql_mode = ''")).ok
    assert ok is not None
    assert [tracker.name for tracker in ok.trackers] == ["sql_mode"]


async def test_the_server_says_whether_there_is_a_command_for_the_processes(proxy):
    client = await proxy.client()
    error = (await client.command(b"\x0a")).error
    assert error is not None
    assert error.code == 1047  # as MySQL of today
    assert len((await client.query("SHOW PROCESSLIST")).rows) == 1


@cases(payload=str.encode, code=ast.literal_eval)
async def test_commands_that_are_not_served_are_refused_and_the_connection_goes_on(
    proxy, payload, code
):
    client = await proxy.client()
    assert (await client.command(payload)).code == code
    assert (await client.query("SELECT 1")).values == [b"1"]


async def dirty(client):
    """Leave all kinds of state."""
    for sql in (
        "SET sql_mode = 'ANSI'",
        "SET @secret = 1",
        "BEGIN",
        "INSERT INTO t VALUES (1)",
    ):
        assert (await client.query(sql)).error is None


@pytest.mark.parametrize("how", ["reset", "change_user"])
async def test_a_fresh_session_has_none_of_the_old_ones_state(server, proxy, how):
    client = await proxy.client()
    await dirty(client)
    if how == "reset":
        result = await client.command(RESET)
        assert result.ok is not None
        assert not result.ok.status & Status.IN_TRANS
    else:
        await client.change_user("root", "", "plain")
    assert "RESET" in server.heard
    result = await client.query("SELECT 1")
    assert result.values == [b"1"]
    assert not result.status & Status.IN_TRANS
    for connection in server.relays:
        assert connection.user_variables == set()
        assert connection.variables.get("sql_mode") != "ANSI"
        assert not connection.in_transaction


@pytest.mark.parametrize("how", ["reset", "change_user"])
async def test_locks_are_free_when_the_end_of_their_session_is_told(server, proxy, how):
    client = await proxy.client()
    await client.query("SELECT GET_LOCK('a', 1)")
    freed = asyncio.Event()
    server.once("RESET", Silence(freed, Ok()))
    ended = client.command(RESET) if how == "reset" else client.change_user("root", "", "plain")
    ending = asyncio.ensure_future(ended)
    await until(lambda: "RESET" in server.heard)
    await (await proxy.client()).query("SELECT 1")
    assert not ending.done()
    freed.set()
    await ending
    assert (await client.query("SELECT 1")).values == [b"1"]
