import ast

import pytest

from streamfrom.proxy.sql.set_variables import (
    has_no_effect,
)
from tests.cases import cases, in_turn
from tests.loop_calls import calls_counted
from tests.proxy.keyspaces import HIGH
from tests.proxy.rigs import said
from tests.sqlparse_ext.facts import statement


@pytest.mark.parametrize("sql", ["SET sort_buffer_size = 5", "SET GLOBAL sort_buffer_size = 5"])
async def test_what_every_shard_must_have_is_set_everywhere(server, other_server, client, sql):
    assert (await client.query(sql)).error is None
    assert said(server) == said(other_server) == [sql]


@cases(sql=str, reason=str)
async def test_a_value_that_each_shard_would_make_otherwise_is_refused(client, sql, reason):
    error = (await client.query(sql)).error
    assert error.code == 1235
    assert reason in error.message.decode()


async def test_a_shard_that_went_down_unnoticed_holds_no_login_up(server, other_server, proxy):
    """Drivers say SET NAMES first, which any shard can answer."""
    client = await proxy.client("commerce")
    server.stop()
    shard = proxy.app.shards["commerce", "-80"]
    assert shard.trouble is None
    assert (await client.query("SET NAMES latin1")).error is None
    assert said(other_server)[:1] == ["SET NAMES latin1"]


@pytest.mark.parametrize("item", ["@a=1", "@@sql_mode='',@`é`='é'"])
async def test_the_loop_does_not_go_through_all_that_is_set(server, client, item):
    """A long SET was tokenised once more in the loop: 84 ms for 100 KB."""
    sql = "SET " + ",".join([item] * (40_000 // len(item)))
    with calls_counted() as counts:
        assert (await client.query(sql)).error is None
    # 6,000 and more if the loop reads the text or goes through what is set; timers take their share.
    assert counts.most_common(1)[0][1] < 2000, counts.most_common(5)


SET = "SET STATEMENT max_statement_time = 5, sql_mode = CONCAT('a', 'b') FOR "


async def test_the_statement_behind_it_is_routed(server, other_server, proxy):
    client = await proxy.client("commerce")
    assert (await client.query(f"{SET}INSERT INTO t (id) VALUES ({HIGH})")).ok
    assert said(other_server)[-1] == f"{SET}INSERT INTO t (id) VALUES ({HIGH})"
    assert not any("INSERT" in text for text in server.heard)
    for sql in ("UPDATE t SET a = 1", f"INSERT INTO t (id) VALUES (1), ({HIGH})"):
        assert (await client.query(SET + sql)).code == 1235


async def test_prepared_it_may_write_and_not_read_from_shards(proxy):
    client = await proxy.client("commerce")
    statement, _, _ = await client.prepare(f"{SET}INSERT INTO t (id) VALUES (?)")
    assert (await client.execute(statement, 5)).ok
    statement, _, _ = await client.prepare(f"{SET}SELECT 1")
    assert (await client.execute(statement)).code == 1295


async def test_what_is_not_well_written_is_the_servers_to_refuse(server, proxy):
    client = await proxy.client()
    assert (await client.query("SET STATEMENT a = 1")).ok
    assert said(server)[-1] == "SET STATEMENT a = 1"


@in_turn
@pytest.mark.parametrize("sql", ["USE commerce", "KILL 5", "SHOW DATABASES"])
async def test_what_the_proxy_answers_may_not_be_sent_behind_it(proxy, sql):
    client = await proxy.client()
    assert (await client.query(SET + sql)).code == 1235


@cases(sql=str, expected=ast.literal_eval)
def test_what_only_vitess_has_is_set_in_vain(sql, expected):
    assert has_no_effect(statement(sql)) is expected


async def test_the_transaction_mode_is_the_proxys(server, client):
    assert (await client.query("SET workload = 'olap'")).ok
    refused = await client.query("SET transaction_mode = 'single'")
    assert (refused.code, refused.message) == (
        1235,
        "unsupported: SET transaction_mode; write it in [server] of the configuration",
    )
    assert (await client.query("SET @transaction_mode = 'single'")).ok
    assert not any("workload" in text for text in server.heard)
