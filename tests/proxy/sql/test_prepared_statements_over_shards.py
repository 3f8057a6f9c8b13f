"""Prepared statements in a sharded keyspace: the values bound decide where they run."""

import pytest

from streamfrom.proxy.wire.constants import FieldType
from tests.proxy.fake_answers import Rows, rows_of
from tests.proxy.fake_client import MODERN, OLD, Refused
from tests.proxy.keyspaces import HIGH
from tests.proxy.rigs import running_proxy
from tests.proxy.sql.binary import told


@pytest.fixture(params=[MODERN, OLD], ids=["modern", "old"])
def capabilities(request):
    return request.param


async def test_the_values_bound_decide_the_shard(server, other_server, client):
    await client.prepare("SELECT a FROM t WHERE id = ?")
    for number in (5, HIGH + 5, b"7"):
        assert (await client.execute(1, number)).rows
    assert told(server, "EXECUTE") == [
        "EXECUTE SELECT a FROM t WHERE id = ? [5]",
        "EXECUTE SELECT a FROM t WHERE id = ? [b'7']",
    ]
    assert told(other_server, "EXECUTE") == [
        f"EXECUTE SELECT a FROM t WHERE id = ? [{HIGH + 5}]"
    ]


async def test_rows_of_several_shards_are_split_with_their_parameters(
    server, other_server, client
):
    await client.prepare("INSERT INTO t (id, a) VALUES (?, ?), (?, ?), (?, ?)")
    result = await client.execute(1, 1, b"a", HIGH, None, 2, b"it's")
    assert result.ok
    assert result.ok.affected_rows == 2
    assert "INSERT INTO t (id, a) VALUES (1, 'a'),(2, 'it''s')" in server.heard
    assert f"INSERT INTO t (id, a) VALUES ({HIGH}, NULL)" in other_server.heard


async def test_each_shard_is_named_its_own_ids_only(server, other_server, client):
    await client.prepare("UPDATE t SET a = ? WHERE id IN (?, ?)")
    assert (await client.execute(1, b"x", 5, HIGH)).ok
    await client.prepare(f"UPDATE t SET a = ? WHERE id IN (6, {HIGH})")
    assert (await client.execute(2, b"y")).ok
    for text in (
        "UPDATE t SET a = 'x' WHERE id IN (5)",
        "UPDATE t SET a = 'y' WHERE id IN (6)",
    ):
        assert text in server.heard
    assert f"UPDATE t SET a = 'y' WHERE id IN ({HIGH})" in other_server.heard


async def test_what_several_shards_never_can_is_refused_at_once(client):
    with pytest.raises(Refused, match="unsupported: "):
        await client.prepare("CALL p(?)")


async def test_a_merged_answer_is_binary(server, other_server, capabilities):
    for each, values in ((server, (1, 4)), (other_server, (2, 3))):
        each.on("SELECT a", rows_of(*values, column="a"))
    async with running_proxy(server, other_server) as proxy:
        client = await proxy.client("commerce", capabilities=capabilities)
        await client.prepare("SELECT COUNT(*) FROM t WHERE id > ?")
        for each, count in ((server, 20), (other_server, 22)):
            types = (FieldType.LONGLONG,)
            rows = Rows(("COUNT(*)",), ((str(count).encode(),),), types=types)
            each.on("SELECT COUNT(*)", rows)
        ((row,),) = (await client.execute(1, 5)).rows
        assert row == b"\0\0" + (42).to_bytes(8, "little")
