from tests.proxy.fake_answers import Error


async def refused(client, sql):
    error = (await client.query(sql)).error
    return None if error is None else (error.code, error.message.decode())


ELSEWHERE = (
    1235,
    "unsupported: functions of advisory locks in another keyspace or shard than 'plain/-', where"
    " this session has locks; release them there",
)


async def test_what_a_server_does_not_tell_is_taken_for_a_lock(server, proxy):
    client = await proxy.client("plain")
    for name in ("'a'", "5"):
        assert await refused(client, f"SELECT GET_LOCK({name}, 1)") is None
    await client.query("USE commerce")
    server.once("IS_USED_LOCK", Error(1399, "XAER_RMFAIL", "XAE07"))
    assert await refused(client, "SELECT RELEASE_LOCK('a')") == ELSEWHERE


async def test_names_that_are_not_known_need_all_to_be_released(proxy):
    client = await proxy.client("plain")
    await client.query("SELECT GET_LOCK(CONCAT('a', 'b'), 1)")
    await client.query("USE commerce")
    assert await refused(client, "SELECT IS_FREE_LOCK('ab')") == ELSEWHERE
    await client.query("USE plain")
    await client.query("SELECT RELEASE_ALL_LOCKS()")
    await client.query("USE commerce")
    assert await refused(client, "SELECT IS_FREE_LOCK('ab')") is None


async def test_several_shards_do_not_call_them(client):
    assert await refused(client, "SELECT GET_LOCK('a', 1) FROM t") == (
        1235,
        "unsupported: functions of advisory locks together with a table in a sharded keyspace;"
        " use one SELECT for each",
    )
