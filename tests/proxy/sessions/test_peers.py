import pytest

from proxy.config.file import Role, Secret, User
from proxy.wire.framing import frame
from tests.proxy.fake_answers import Silence, until
from tests.proxy.house import running_proxy


ADMIN = User("root", Secret(""), None, Role.READWRITE, None)
EVE = User("eve", Secret("sesame"), None, Role.READWRITE, frozenset({"plain"}))


async def test_kill_query_ends_a_statement_with_the_servers_own_error(server, house):
    victim, killer = await house.client(), await house.client()
    server.once("SLEEP", Silence())
    victim.send("SELECT SLEEP(9)")
    await until(lambda: "SELECT SLEEP(9)" in server.heard)
    number = victim.greeting.connection_id
    assert (await killer.query(f"KILL QUERY {number}")).error is None
    assert (await victim.answer())[0].code == 1317
    assert (await victim.query("SELECT 1")).values == [b"1"]


async def test_kill_query_is_answered_when_the_server_has_been_told(server, house):
    victim, killer = await house.client(), await house.client()
    server.once("SLEEP", Silence())
    victim.send("SELECT SLEEP(9)")
    await until(lambda: "SELECT SLEEP(9)" in server.heard)
    assert not any("KILL QUERY" in sql for sql in server.controlled)
    await killer.query(f"KILL QUERY {victim.greeting.connection_id}")
    assert any("KILL QUERY" in sql for sql in server.controlled)


@pytest.mark.parametrize("by_command", [False, True])
async def test_kill_ends_a_connection(house, by_command):
    victim, killer = await house.client(), await house.client()
    number = victim.greeting.connection_id
    if by_command:
        await killer.command(b"\x0c" + number.to_bytes(4, "little"))
    else:
        await killer.query(f"KILL {number}")
    assert await victim.is_closed()


async def test_only_ones_own_connections_can_be_killed(server):
    async with running_proxy(server, users=(ADMIN, EVE)) as house:
        admin = await house.client(user="root")
        eve = await house.client(user="eve", password="sesame")
        assert (await eve.query(f"KILL {admin.greeting.connection_id}")).code == 1095
        assert (await eve.query("KILL 4711")).code == 1094
        half = await house.greeted()
        assert (await eve.query(f"KILL {half.greeting.connection_id}")).code == 1094
        assert (await admin.query("SELECT 1")).values == [b"1"]


async def test_a_client_is_told_the_id_that_kill_takes(house):
    client = await house.client()
    result = await client.query("SELECT CONNECTION_ID()")
    assert result.values == [str(client.greeting.connection_id).encode()]


async def test_statistics_are_in_a_servers_words(house):
    client = await house.client()
    await client.query("SELECT 1")
    for payload in (b"\x0e", b"\x02plain"):
        await client.command(payload)
    client.write(frame(b"\x09", 0))
    client._framer.next_sequence = 1
    said = (await client.packet()).decode()
    assert said.startswith("Uptime: ")
    figures = dict(part.split(": ") for part in said.split("  "))
    assert float(figures.pop("Queries per second avg")) >= 0
    assert int(figures.pop("Uptime")) < 60
    # COM_PING and COM_STATISTICS are no questions.
    assert figures == {
        "Threads": "1",
        "Questions": "2",
        "Slow queries": "0",
        "Opens": "0",
        "Flush tables": "0",
        "Open tables": "0",
    }
