import pytest

from proxy.wire.constants import Status
from proxy.wire.framing import frame
from tests.proxy.fake_server import until


PING, STATISTICS, DEBUG, RESET = b"\x0e", b"\x09", b"\x0d", b"\x1f"


async def test_the_small_commands(server, house):
    client = await house.client()
    assert (await client.command(PING)).ok is not None
    assert (await client.command(DEBUG)).ok is not None
    assert (await client.command(b"\x02plain:-")).ok is not None
    assert (await client.command(b"\x02nowhere")).code == 1049
    client.write(frame(STATISTICS, 0))
    client._framer.next_sequence = 1
    assert (await client.packet()).startswith(b"Uptime: ")
    client.write(frame(b"\x19\x01\0\0\0", 0))  # COM_STMT_CLOSE is not answered
    assert (await client.command(PING)).ok is not None


async def test_a_refresh_goes_to_the_server_of_one_shard(server, house):
    client = await house.client()
    assert (await client.command(b"\x07\x04")).code == 1047  # as this server says
    assert server.heard[-1] == "COMMAND 7"
    assert (await client.command(b"\x02commerce")).ok is not None
    assert (await client.command(b"\x07\x04")).code == 1235


async def test_the_processes_are_those_of_the_proxy(house):
    client = await house.client()
    assert len((await client.command(b"\x0a")).rows) == 1


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"\x05db", 1047),
        (b"\x1b\5\0", 1047),
        (b"\xfe", 1047),
        (b"\x17\1\0\0\0\0\1\0\0\0", 1243),
    ],
)
async def test_commands_that_are_not_served_are_refused_and_the_connection_goes_on(
    house, payload, code
):
    client = await house.client()
    assert (await client.command(payload)).code == code
    assert (await client.query("SELECT 1")).values == [b"1"]


async def test_columns_of_a_table_come_from_the_server(server, house):
    client = await house.client()
    client.write(frame(b"\x04t\0", 0))
    client._framer.next_sequence = 1
    assert (await client.packet()).startswith(b"\x03def")
    assert (await client.packet())[0] == 0xFE
    assert server.heard[-1] == "FIELD_LIST t"
    nowhere = await house.client(None)
    assert (await nowhere.command(b"\x04t\0")).code == 1046


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
async def test_a_fresh_session_has_none_of_the_old_ones_state(server, house, how):
    client = await house.client()
    await dirty(client)
    if how == "reset":
        result = await client.command(RESET)
        assert result.ok is not None
        assert not result.ok.status & Status.IN_TRANS
    else:
        await client.change_user("root", "", "plain")
    await until(lambda: "RESET" in server.heard)
    result = await client.query("SELECT 1")
    assert result.values == [b"1"]
    assert not result.status & Status.IN_TRANS
    for connection in server.relays:
        assert connection.user_variables == set()
        assert "sql_mode" not in connection.variables
        assert not connection.in_transaction
