"""KILL by an expression, and of oneself."""

import pytest

from tests.proxy.fake_answers import Rows, rows_of


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


async def test_tables_are_not_asked_whom_to_kill(server, proxy):
    client = await proxy.client()
    assert (await client.query("KILL (SELECT id FROM t)")).code == 1235
