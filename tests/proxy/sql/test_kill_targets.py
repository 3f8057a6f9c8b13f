"""KILL by an expression, and of oneself."""

import pytest

from tests.proxy.fake_answers import Rows, rows_of
from tests.proxy.fake_server import FakeServer
from tests.proxy.rigs import running_proxy


@pytest.mark.parametrize(
    "sql", ["KILL %d", "KILL CONNECTION_ID()", "kill connection (connection_id() + 0)"]
)
async def test_who_kills_itself_is_told_so(server, proxy, sql):
    client = await proxy.client()
    number = client.greeting.connection_id
    server.once("SELECT (", rows_of(number))
    killed = await client.query(sql % number if "%" in sql else sql)
    # The fake server is a MySQL, which interrupts the statement.
    assert killed.error is not None
    assert (killed.error.code, killed.error.sqlstate) == (1317, "70100")
    assert await client.is_closed()


async def test_a_user_variable_may_name_the_victim(server, proxy):
    victim, killer = await proxy.client(), await proxy.client()
    server.once("SELECT (@victim", rows_of(victim.greeting.connection_id))
    assert (await killer.query("KILL @victim")).error is None
    assert await victim.is_closed()


@pytest.mark.parametrize("value", [None, b"x", b"", b"-1"])
async def test_what_is_no_id_is_an_unknown_one(server, proxy, value):
    client = await proxy.client()
    server.once("SELECT (@victim", Rows(("@victim",), ((value,),)))
    assert (await client.query("KILL @victim")).code == 1094


async def test_mariadb_has_an_error_of_its_own_for_who_kills_itself():
    async with FakeServer("10.11.6-MariaDB") as server, running_proxy(server) as proxy:
        client = await proxy.client()
        server.once("SELECT (", rows_of(client.greeting.connection_id))
        killed = await client.query("KILL CONNECTION_ID()")
        assert killed.error is not None
        assert (killed.error.code, killed.error.sqlstate) == (1927, "70100")
        assert await client.is_closed()


async def test_tables_are_not_asked_whom_to_kill(server, proxy):
    client = await proxy.client()
    assert (await client.query("KILL (SELECT id FROM t)")).code == 1235
