import pytest

from tests.proxy.fake_answers import Error, Rows
from tests.proxy.keyspaces import HIGH
from tests.proxy.rigs import add_message_table, claimed, claims, running_proxy, said


DEADLOCK = Error(1213, "Deadlock found when trying to get lock")


async def test_an_empty_statement_is_an_error_as_on_a_server(client):
    for sql in ("", " \n", " ; "):
        assert (await client.query(sql)).code == 1065


async def test_a_comment_alone_is_answered_ok_as_on_a_server(client):
    for sql in (" /* ping */ ", "--", "# nothing"):
        assert (await client.query(sql)).error is None


async def test_whoever_comes_after_set_global_begins_with_what_it_set(server):
    async with running_proxy(server) as proxy:
        first = await proxy.client("plain")
        for sql, logins in (("SELECT 1", 0), ("SET GLOBAL max_allowed_packet = 2048", 1)):
            await first.query(sql)
            before = sum("session_track" in heard for heard in server.heard)
            second = await proxy.client("plain")
            await first.close()
            await second.query("SELECT @@wait_timeout")
            after = sum("session_track" in heard for heard in server.heard)
            assert (after - before, server.heard.count("RESET")) == (logins, 0)
            first = second


# --- DDL -------------------------------------------------------------------------------


async def test_ddl_runs_everywhere_and_new_message_tables_are_known_behind_it(
    server, other_server, client
):
    assert (await client.query("STREAM * FROM msg")).code == 1146
    add_message_table(server)
    add_message_table(other_server)
    result = await client.query("CREATE TABLE msg (id BIGINT) COMMENT 'vitess_message'")
    assert result.error is None
    for each in (server, other_server):
        assert said(each)[-1].startswith("CREATE TABLE")
    client.send("STREAM * FROM msg")
    assert await client.head() == 2


async def test_ddl_commits_the_transaction_on_every_shard(server, other_server, client):
    await client.query("BEGIN")
    await client.query(f"INSERT INTO t (id) VALUES (1), ({HIGH})")
    await client.query("CREATE TABLE x (id INT)")
    for each in (server, other_server):
        assert said(each)[-2:] == ["COMMIT", "CREATE TABLE x (id INT)"]


async def test_temporary_tables_need_one_shard(server, client):
    sql = "CREATE TEMPORARY TABLE x (id INT)"
    assert "temporary tables in a sharded keyspace" in (await client.query(sql)).message
    await client.query("USE plain")
    await client.query("BEGIN")
    await client.query("INSERT INTO u VALUES (1)")
    assert (await client.query(sql)).error is None
    assert "COMMIT" not in server.heard  # as on a server
    assert server.heard.count(sql) == 1


# --- locks -----------------------------------------------------------------------------


async def test_unlock_tables_reaches_what_was_locked_in_one_shard(server, client):
    for sql in ("USE `commerce:-80`", "LOCK TABLES t READ", "USE commerce", "UNLOCK TABLES"):
        assert (await client.query(sql)).error is None
    assert said(server) == ["LOCK TABLES t READ", "UNLOCK TABLES"]


# --- what the proxy knows itself -------------------------------------------------------


async def test_show_and_kill_are_answered_here(server, client):
    shown = await client.query("SHOW VITESS_SHARDS")
    assert shown.values == [b"commerce/-80", b"commerce/80-", b"plain/-"]
    assert (await client.query("KILL QUERY ID 5")).code == 1235
    assert (await client.query("KILL 1.5")).code == 1094
    assert said(server) == []


# --- messages --------------------------------------------------------------------------


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


async def test_an_insert_wakes_the_stream_of_its_shard_at_commit(
    server, other_server, messages
):
    reader = await messages.client("commerce")
    reader.send("STREAM * FROM msg")
    assert await reader.head() == 2
    writer = await messages.client("commerce")
    await writer.query("BEGIN")
    await writer.query(f"INSERT INTO msg (id, message) VALUES (5, 'a'), ({HIGH}, 'b')")
    for each, number in ((server, 5), (other_server, HIGH)):
        each.once("FOR UPDATE SKIP LOCKED", Rows(tuple("abcde"), (claimed(number, b"m"),)))
    assert claims(server) + claims(other_server) == []
    await writer.query("COMMIT")
    got = {(await reader.row())[0], (await reader.row())[0]}
    assert got == {b"5", str(HIGH).encode()}
    (mine,) = claims(server)
    assert "IN (5)" in mine  # a shard hears of its own rows only


async def test_an_open_comment_behind_many_is_refused_at_once(client):
    """Each comment more would double the time of a pattern that tries all ways to read them."""
    found = await client.query("/**/" * 200 + "/*")
    assert found.error is not None
    assert "a comment has no end" in str(found.error)
