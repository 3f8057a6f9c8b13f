import pytest

from tests.proxy.fake_answers import Error, rows_of
from tests.proxy.fake_client import MODERN, OLD
from tests.proxy.keyspaces import HIGH
from tests.proxy.rigs import said


async def test_a_delete_with_a_limit_asks_each_shard_for_what_is_left(
    server, other_server, client
):
    result = await client.query(f"DELETE FROM t WHERE id IN (1, {HIGH}, 2) LIMIT 2")
    assert result.ok is not None
    assert result.ok.affected_rows == 2  # one for each part, says the fake
    assert said(server)[1] == "DELETE FROM t WHERE id IN (1, 2) LIMIT 2"
    assert said(other_server)[1] == f"DELETE FROM t WHERE id IN ({HIGH}) LIMIT 1"


@pytest.mark.parametrize("capabilities", [MODERN, OLD])
async def test_a_scattered_select_is_one_result(server, other_server, proxy, capabilities):
    server.on("FROM t", rows_of(1, 2))
    other_server.on("FROM t", rows_of(8, 9))
    client = await proxy.client("commerce", capabilities=capabilities)
    client.send("SELECT id FROM t; SELECT 1")
    first, second = await client.answer()
    assert first.values == [b"1", b"2", b"8", b"9"]
    assert second.values == [b"1"]


async def test_a_scattered_select_that_one_shard_refuses_ends_in_its_error(
    server, other_server, client
):
    server.on("FROM t", rows_of(1))
    other_server.on("FROM t", Error(1146, "Table 'shop.t' doesn't exist", "42S02"))
    result = await client.query("SELECT id FROM t")
    assert (result.values, result.code) == ([b"1"], 1146)
    assert (await client.query("SELECT 1")).values == [b"1"]


async def test_what_cannot_be_answered_exactly_is_refused(client):
    result = await client.query("SELECT GROUP_CONCAT(a), @x FROM t")
    assert (result.code, result.message) == (
        1235,
        "unsupported: an aggregate over several shards; give a value of the vindex column, or ask each"
        " shard after USE `keyspace:shard`",
    )
