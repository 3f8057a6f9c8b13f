import pytest

from tests.proxy.keyspaces import HIGH
from tests.proxy.rigs import said


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


async def test_prepared_it_may_write_and_not_read_from_shards(proxy):
    client = await proxy.client("commerce")
    statement, _, _ = await client.prepare(f"{SET}INSERT INTO t (id) VALUES (?)")
    assert (await client.execute(statement, 5)).ok
    statement, _, _ = await client.prepare(f"{SET}SELECT 1")
    assert (await client.execute(statement)).code == 1295


@pytest.mark.parametrize("sql", ["USE commerce", "KILL 5", "SHOW DATABASES"])
async def test_what_the_proxy_answers_may_not_be_sent_behind_it(proxy, sql):
    client = await proxy.client()
    assert (await client.query(SET + sql)).code == 1235
