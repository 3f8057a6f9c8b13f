import ast
import asyncio

import pytest

from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.errors import MalformedPacket
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.proxy.sessions.dispatch import take_attributes
from streamfrom.proxy.sql.prepared_statements import PreparedStatement, PreparedStatements
from streamfrom.proxy.wire.attribute_encoding import COUNT_FOLLOWS, Attribute, into_execute
from streamfrom.proxy.wire.binary_parameters import Parameter
from streamfrom.proxy.wire.commands import stmt_execute
from streamfrom.proxy.wire.constants import FieldType, TrackerKind
from streamfrom.proxy.wire.framing import frame
from streamfrom.proxy.wire.resultset import Tracker
from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE
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


RED = (Attribute(b"colour", Parameter(FieldType.STRING, unsigned=False, data=b"red")),)
BODY = b"\0\1\x08\0" + (7).to_bytes(8, "little")


@pytest.fixture
def state():
    return SessionState(0, Settings())


@pytest.fixture
def taken(state):
    table = PreparedStatements()
    table.begin()
    table.add(PreparedStatement(StatementCache().get(b"SELECT ?", DEFAULT_MODE), None))
    return lambda payload: take_attributes(payload, state, table)


def test_an_execution_is_split_by_what_the_statement_takes_if_it_is_known(state, taken):
    known, unknown = (
        stmt_execute(number, COUNT_FOLLOWS, into_execute(BODY, 1, RED))[4:] for number in (1, 9)
    )
    assert taken(known) == stmt_execute(1, 0, BODY)[4:]
    assert state.attributes == RED
    assert taken(unknown) == unknown
    assert state.attributes == ()


@pytest.mark.parametrize("payload", [b"\x0e", b"", b"\x02plain", b"\x16SELECT 1"])
def test_no_other_command_has_any_and_what_makes_no_sense_is_refused(state, taken, payload):
    state.attributes = RED
    assert taken(payload) == payload
    assert state.attributes == ()
    with pytest.raises(MalformedPacket, match=r"^Malformed communication packet\.$"):
        taken(b"\x03\x05\x01")


async def test_a_refresh_goes_to_the_server_of_one_shard(server, proxy):
    client = await proxy.client()
    assert (await client.command(b"\x07\x04")).code == 1047  # as this server says
    assert server.heard[-1] == "COMMAND 7"
    assert (await client.command(b"\x02commerce")).ok is not None
    assert (await client.command(b"\x07\x04")).code == 1235


async def test_columns_of_a_table_come_from_the_server(server, proxy):
    client = await proxy.client()
    client.write(frame(b"\x04t\0", 0))
    assert (await client.packet(1)).startswith(b"\x03def")
    assert (await client.packet())[0] == 0xFE
    assert server.heard[-1] == "FIELD_LIST t"
    nowhere = await proxy.client(None)
    assert (await nowhere.command(b"\x04t\0")).code == 1046
