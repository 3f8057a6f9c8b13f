import ast
import asyncio

import pytest

from streamfrom.proxy.wire.constants import TrackerKind
from streamfrom.proxy.wire.framing import frame
from streamfrom.proxy.wire.resultset import Tracker
from tests.cases import cases, in_turn
from tests.proxy.fake_answers import Ok, Silence, until
from tests.proxy.fake_client import OLD


RESET = b"\x1f"


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


@in_turn
@cases(payload=str.encode, code=ast.literal_eval)
async def test_commands_that_are_not_served_are_refused_and_the_connection_goes_on(
    proxy, payload, code
):
    client = await proxy.client()
    assert (await client.command(payload)).code == code
    assert (await client.query("SELECT 1")).values == [b"1"]


@in_turn
@pytest.mark.parametrize(
    "payload", [b"\x04t", b"\x0c\1", b"\x1a\1", b"\x1b", b"\x1c\1\0\0\0\1"]
)
async def test_a_command_that_is_cut_ends_its_connection_alone(proxy, payload):
    client, other = await proxy.client(), await proxy.client()
    assert (await client.command(payload)).code == 1835
    assert await client.is_closed()
    assert (await other.query("SELECT 1")).values == [b"1"]


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


async def test_columns_of_a_table_come_from_the_server(server, proxy):
    client = await proxy.client()
    client.write(frame(b"\x04t\0", 0))
    assert (await client.packet(1)).startswith(b"\x03def")
    assert (await client.packet())[0] == 0xFE
    assert server.heard[-1] == "FIELD_LIST t"
    nowhere = await proxy.client(None)
    assert (await nowhere.command(b"\x04t\0")).code == 1046
