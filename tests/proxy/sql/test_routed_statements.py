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


async def test_what_cannot_be_answered_exactly_is_refused(client):
    result = await client.query("SELECT GROUP_CONCAT(a), @x FROM t")
    assert (result.code, result.message) == (
        1235,
        "unsupported: an aggregate over several shards; give a value of the vindex column, or ask each"
        " shard after USE `keyspace:shard`",
    )
