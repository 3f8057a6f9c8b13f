import pytest

from tests.proxy.fake_answers import Error
from tests.proxy.keyspaces import HIGH
from tests.proxy.rigs import said


DEADLOCK = Error(1213, "Deadlock found when trying to get lock")


async def test_an_empty_statement_is_an_error_as_on_a_server(client):
    for sql in ("", " \n", " ; "):
        assert (await client.query(sql)).code == 1065


async def test_temporary_tables_need_one_shard(server, client):
    sql = "CREATE TEMPORARY TABLE x (id INT)"
    assert "temporary tables in a sharded keyspace" in (await client.query(sql)).message
    await client.query("USE plain")
    await client.query("BEGIN")
    await client.query("INSERT INTO u VALUES (1)")
    assert (await client.query(sql)).error is None
    assert "COMMIT" not in server.heard  # as on a server
    assert server.heard.count(sql) == 1


async def test_unlock_tables_reaches_what_was_locked_in_one_shard(server, client):
    for sql in ("USE `commerce:-80`", "LOCK TABLES t READ", "USE commerce", "UNLOCK TABLES"):
        assert (await client.query(sql)).error is None
    assert said(server) == ["LOCK TABLES t READ", "UNLOCK TABLES"]


@pytest.mark.parametrize("ids", ["5", f"5, {HIGH}"], ids=["one shard", "two shards"])
async def test_an_ack_that_a_deadlock_undid_is_sent_again_on_both_ways(server, messages, ids):
    client = await messages.client("commerce")
    ack = f"UPDATE msg SET time_acked = 1800000000000000005 WHERE id IN ({ids})"
    # The first time the shape is not known yet, and so it goes the long way.
    for _ in range(3):
        server.once("UPDATE msg", DEADLOCK)
        assert (await client.query(ack)).error is None
    server.once("UPDATE msg", *[DEADLOCK] * 10)
    assert (await client.query(ack)).code == 1213


async def test_an_open_comment_behind_many_is_refused_at_once(client):
    """Each comment more would double the time of a pattern that tries all ways to read them."""
    found = await client.query("/**/" * 200 + "/*")
    assert found.error is not None
    assert "a comment has no end" in str(found.error)
