import pytest

from tests.proxy.fake_answers import until
from tests.proxy.keyspaces import HIGH
from tests.proxy.rigs import add_message_table, claims, running_proxy, said


SET = "SET STATEMENT max_statement_time = 5, sql_mode = CONCAT('a', 'b') FOR "


async def test_the_statement_behind_it_is_routed(server, other_server, proxy):
    client = await proxy.client("commerce")
    assert (await client.query(f"{SET}INSERT INTO t (id) VALUES ({HIGH})")).ok
    assert said(other_server)[-1] == f"{SET}INSERT INTO t (id) VALUES ({HIGH})"
    assert not any("INSERT" in text for text in server.heard)
    for sql in ("UPDATE t SET a = 1", f"INSERT INTO t (id) VALUES (1), ({HIGH})"):
        assert (await client.query(SET + sql)).code == 1235


async def test_what_is_not_well_written_is_the_servers_to_refuse(server, proxy):
    client = await proxy.client()
    assert (await client.query("SET STATEMENT a = 1")).ok
    assert said(server)[-1] == "SET STATEMENT a = 1"


async def test_a_message_behind_it_is_completed_and_told(server):
    add_message_table(server)
    async with running_proxy(server) as proxy:
        stream = await proxy.client()
        stream.send(f"{SET}STREAM * FROM msg")
        await stream.head()
        client = await proxy.client()
        assert (await client.query(f"{SET}UPDATE msg SET time_acked = NOW() WHERE id = 1")).ok
        ack = said(server)[-1]
        assert ack.startswith(f"{SET}UPDATE msg FORCE INDEX (PRIMARY) SET time_acked = 1")
        assert ack.endswith("time_next = NULL WHERE (id = 1) AND time_acked IS NULL")
        assert (await client.query(f"{SET}INSERT INTO msg (id) VALUES (7)")).ok
        await until(lambda: any("`id` IN (7)" in text for text in claims(server)))


async def test_prepared_it_may_write_and_not_read_from_shards(proxy):
    client = await proxy.client("commerce")
    statement, _, _ = await client.prepare(f"{SET}INSERT INTO t (id) VALUES (?)")
    assert (await client.execute(statement, 5)).ok
    statement, _, _ = await client.prepare(f"{SET}SELECT 1")
    assert (await client.execute(statement)).code == 1295


async def test_a_prepared_query_of_one_server_goes_there_as_it_is(server):
    async with running_proxy(server) as proxy:
        client = await proxy.client("plain")
        sql = f"{SET}SELECT * FROM t WHERE id = ?"
        statement, parameters, _ = await client.prepare(sql)
        assert parameters == 1
        assert (await client.execute(statement, 5)).error is None
        assert f"PREPARE {sql}" in server.heard


@pytest.mark.parametrize("sql", ["USE commerce", "KILL 5", "SHOW DATABASES"])
async def test_what_the_proxy_answers_may_not_be_sent_behind_it(proxy, sql):
    client = await proxy.client()
    assert (await client.query(SET + sql)).code == 1235
