async def test_what_cannot_be_answered_exactly_is_refused(client):
    result = await client.query("SELECT GROUP_CONCAT(a), @x FROM t")
    assert (result.code, result.message) == (
        1235,
        "unsupported: an aggregate over several shards; give a value of the vindex column, or ask each"
        " shard after USE `keyspace:shard`",
    )
