import asyncio

import pytest

from proxy.wire.constants import Status
from tests.proxy.fake_server import Error, HangUp, Ok, Rows, until
from tests.proxy.house import add_message_table, claimed, running_proxy, said
from tests.proxy.keyspaces import HIGH


async def test_a_qualified_statement_runs_under_the_real_name_in_its_own_database(
    server, house
):
    for database in (None, "commerce"):
        client = await house.client(database)
        assert (await client.query("SELECT * FROM plain.t")).values == [b"1"]
    assert said(server) == ["SELECT * FROM t"] * 2
    assert {connection.database for connection in server.relays} == {"db"}


async def test_an_empty_statement_is_an_error_as_on_a_server(client):
    for sql in ("", " \n", " ; "):
        assert (await client.query(sql)).code == 1065


async def test_a_comment_alone_is_answered_ok_as_on_a_server(client):
    for sql in (" /* ping */ ", "--", "# nothing"):
        assert (await client.query(sql)).error is None


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


# --- transactions ----------------------------------------------------------------------


async def test_a_transaction_reaches_a_shard_when_a_statement_does(
    server, other_server, client
):
    begun = await client.query("START TRANSACTION READ ONLY")
    assert begun.status & Status.IN_TRANS
    assert said(server) == []
    await client.query("SELECT * FROM t WHERE id = 1")
    committed = await client.query("COMMIT")
    assert not committed.status & Status.IN_TRANS
    assert said(server) == [
        "START TRANSACTION READ ONLY",
        "SELECT * FROM t WHERE id = 1",
        "COMMIT",
    ]
    assert said(other_server) == []


async def test_begin_commits_what_came_before(server, other_server, client):
    await client.query("BEGIN")
    await client.query(f"INSERT INTO t (id) VALUES (1), ({HIGH})")
    await client.query("BEGIN")
    assert (said(server)[-1], said(other_server)[-1]) == ("COMMIT", "COMMIT")
    await client.query("ROLLBACK")
    assert "ROLLBACK" not in server.heard


async def test_begin_in_another_keyspace_commits_what_came_before_elsewhere(
    server, other_server, client
):
    await client.query("BEGIN")
    await client.query(f"INSERT INTO t (id) VALUES ({HIGH})")
    await client.query("USE plain")
    await client.query("BEGIN")
    assert said(other_server)[-1] == "COMMIT"
    await client.query("INSERT INTO u VALUES (1)")
    await client.query("ROLLBACK")
    assert said(server)[-1] == "ROLLBACK"
    assert "ROLLBACK" not in other_server.heard


async def test_a_transaction_is_ended_where_it_was_opened_whatever_the_current_target(
    server, other_server, client
):
    await client.query("BEGIN")
    await client.query(f"INSERT INTO t (id) VALUES ({HIGH})")
    await client.query("USE plain")
    assert (await client.query("COMMIT")).error is None
    assert other_server.heard[-1] == "COMMIT"
    assert not any(text.startswith("INIT_DB db") for text in other_server.heard)


async def test_the_begin_of_an_unsharded_keyspace_is_the_servers(server, client):
    await client.query("USE plain")
    result = await client.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    assert result.error is None
    await client.query("INSERT INTO u VALUES (1)")
    assert (await client.query("COMMIT AND CHAIN")).error is None
    assert said(server) == [
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        "INSERT INTO u VALUES (1)",
        "COMMIT AND CHAIN",
    ]


@pytest.mark.parametrize(
    "sql",
    ["START TRANSACTION WITH CONSISTENT SNAPSHOT", "COMMIT AND CHAIN", "ROLLBACK RELEASE"],
)
async def test_what_only_one_server_can_promise_is_refused_over_several(client, sql):
    await client.query("BEGIN")
    await client.query(f"INSERT INTO t (id) VALUES (1), ({HIGH})")
    assert (await client.query(sql)).code == 1235


async def test_a_snapshot_without_a_database_is_of_the_shard_that_is_read(
    server, other_server, house
):
    # What a dump of one shard asks, which names its database last.
    client = await house.client(None)
    begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
    asked = (begin, "UNLOCK TABLES", "SELECT @@version", "SHOW VARIABLES LIKE 'x'")
    for sql in (*asked, "USE `commerce:80-`", "SELECT * FROM t"):
        assert (await client.query(sql)).error is None, sql
    assert begin not in said(server)
    assert said(other_server) == [begin, "SELECT * FROM t"]
    assert (await client.query("ROLLBACK")).error is None
    assert said(other_server)[-1] == "ROLLBACK"


async def test_a_snapshot_is_of_no_two_shards_of_a_keyspace(other_server, house):
    client = await house.client(None)
    assert (await client.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")).error is None
    refused = await client.query("SELECT * FROM commerce.t")
    assert (refused.code, "CONSISTENT SNAPSHOT" in refused.message) == (1235, True)


async def test_unlock_tables_reaches_what_was_locked_in_one_shard(server, client):
    for sql in ("USE `commerce:-80`", "LOCK TABLES t READ", "USE commerce", "UNLOCK TABLES"):
        assert (await client.query(sql)).error is None
    assert said(server) == ["LOCK TABLES t READ", "UNLOCK TABLES"]


async def test_savepoints_reach_every_branch_and_late_ones_too(server, other_server, client):
    await client.query("BEGIN")
    await client.query("INSERT INTO t (id) VALUES (1)")
    for sql in ("SAVEPOINT a", "ROLLBACK TO a", "RELEASE SAVEPOINT a"):
        assert (await client.query(sql)).error is None
    await client.query(f"INSERT INTO t (id) VALUES ({HIGH})")
    expected = ["SAVEPOINT a", "ROLLBACK TO a", "RELEASE SAVEPOINT a"]
    assert said(server)[2:] == expected
    assert said(other_server)[1:-1] == expected


async def test_a_savepoint_in_one_keyspace_is_repeated_in_another(server, other_server, client):
    await client.query("USE plain")
    await client.query("BEGIN")
    await client.query("INSERT INTO u VALUES (1)")
    await client.query("SAVEPOINT a")
    await client.query("USE commerce")
    await client.query(f"INSERT INTO t (id) VALUES ({HIGH})")
    await client.query("ROLLBACK TO a")
    assert said(server)[-2:] == ["SAVEPOINT a", "ROLLBACK TO a"]
    assert said(other_server)[1:] == [
        "SAVEPOINT a",
        f"INSERT INTO t (id) VALUES ({HIGH})",
        "ROLLBACK TO a",
    ]


async def test_a_savepoint_that_opens_the_transaction_without_autocommit_is_repeated_too(
    server, other_server, client
):
    await client.query("USE plain")
    await client.query("SET autocommit = 0")
    await client.query("SAVEPOINT a")
    await client.query("INSERT INTO u VALUES (1)")
    await client.query("USE `commerce:80-`")
    await client.query("DELETE FROM t")
    assert (await client.query("RELEASE SAVEPOINT a")).error is None
    assert said(server)[-3:] == [
        "SAVEPOINT a",
        "INSERT INTO u VALUES (1)",
        "RELEASE SAVEPOINT a",
    ]
    assert said(other_server)[-3:] == ["SAVEPOINT a", "DELETE FROM t", "RELEASE SAVEPOINT a"]


async def test_a_broken_transaction_refuses_everything_until_rollback(
    server, other_server, client
):
    await client.query("BEGIN")
    await client.query(f"INSERT INTO t (id) VALUES (1), ({HIGH})")
    other_server.once("UPDATE", HangUp())
    assert (await client.query(f"UPDATE t SET a = 1 WHERE id = {HIGH}")).code == 1105
    for sql in (
        "INSERT INTO t (id) VALUES (2)",
        "SELECT * FROM t",
        "SAVEPOINT a",
        f"INSERT INTO t (id) VALUES (2), ({HIGH})",
    ):
        assert "send ROLLBACK, then begin again" in (await client.query(sql)).message
    assert (await client.query("ROLLBACK")).error is None
    assert (await client.query("INSERT INTO t (id) VALUES (3)")).error is None
    assert not any("(2)" in text for text in server.heard + other_server.heard)


@pytest.mark.parametrize("sql", ["COMMIT", "BEGIN"])
async def test_a_broken_transaction_that_is_to_be_committed_says_that_it_was_not(
    server, house, sql
):
    client = await house.client()
    await client.query("BEGIN")
    server.once("INSERT", HangUp())
    await client.query("INSERT INTO u VALUES (1)")
    result = await client.query(sql)
    assert "nothing was committed" in result.message
    assert (await client.query("BEGIN")).error is None
    assert (await client.query("INSERT INTO u VALUES (2)")).error is None


async def test_a_partial_commit_is_told_as_such(server, other_server, client):
    await client.query("BEGIN")
    await client.query(f"INSERT INTO t (id) VALUES (1), ({HIGH})")
    other_server.once("COMMIT", Error(1180, "Got error 28"))
    result = await client.query("COMMIT")
    assert result.code == 1105
    assert result.message == (
        "partial commit: committed on commerce/-80; not on commerce/80- (Got error 28)"
    )
    assert not (await client.query("SELECT 1")).status & Status.IN_TRANS


async def test_switching_autocommit_on_commits_everywhere(server, other_server, client):
    await client.query("SET autocommit = 0")
    await client.query(f"INSERT INTO t (id) VALUES (1), ({HIGH})")
    await client.query("SET autocommit = 1")
    await until(lambda: "COMMIT" in server.heard and "COMMIT" in other_server.heard)
    assert not any(c.in_transaction for c in (*server.relays, *other_server.relays))


# --- SET -------------------------------------------------------------------------------


async def test_a_variable_follows_the_session_from_shard_to_shard(server, other_server, client):
    await client.query("SET time_zone = '+01:00'")
    await client.query(f"SELECT * FROM t WHERE id = {HIGH}")
    (connection,) = other_server.relays
    assert connection.variables["time_zone"] == "+01:00"


async def test_names_follow_with_their_collation(server, other_server, client):
    assert (await client.query("SET NAMES latin1 COLLATE latin1_bin")).error is None
    await client.query(f"SELECT * FROM t WHERE id = {HIGH}")
    (connection,) = other_server.relays
    assert connection.variables["character_set_client"] == "latin1"
    assert connection.variables["collation_connection"] == "latin1_bin"


@pytest.mark.parametrize("sql", ["SET @a = 1", "SET GLOBAL sort_buffer_size = 5"])
async def test_what_every_shard_must_have_is_set_everywhere(server, other_server, client, sql):
    assert (await client.query(sql)).error is None
    assert said(server) == said(other_server) == [sql]


@pytest.mark.parametrize("sql", ["SET workload = 'olap'", "SET @@transaction_mode = 'multi'"])
async def test_vitesss_own_variables_mean_nothing_here(server, other_server, client, sql):
    assert (await client.query(sql)).error is None
    assert said(server) == said(other_server) == []


async def test_a_shard_that_is_down_is_not_asked_to_set_a_variable(server, other_server, house):
    server.stop()
    shard = house.app._shards["commerce", "-80"]
    shard.suspect()
    await until(lambda: shard.trouble is not None)
    client = await house.client("commerce")
    assert (await client.query("SET time_zone = '+01:00'")).error is None
    assert said(other_server) == ["SET time_zone = '+01:00'"]


# --- what the proxy knows itself -------------------------------------------------------


async def test_show_and_kill_are_answered_here(server, client):
    shown = await client.query("SHOW VITESS_SHARDS")
    assert shown.values == [b"commerce/-80", b"commerce/80-", b"plain/-"]
    assert (await client.query("KILL USER root")).code == 1235
    assert (await client.query("KILL 1.5")).code == 1094
    assert said(server) == []


# --- messages --------------------------------------------------------------------------


async def test_an_ack_is_completed_on_the_hot_path_and_the_long_one(server, messages):
    client = await messages.client("commerce")
    for number in (1, 2, 3):
        sql = f"UPDATE msg SET time_acked = NOW() WHERE id = {number}"
        assert (await client.query(sql)).error is None
        assert "time_next = NULL" in said(server)[-1]
        assert "time_acked IS NULL" in said(server)[-1]


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
    claims = [text for text in server.heard + other_server.heard if "SKIP LOCKED" in text]
    assert claims == []
    await writer.query("COMMIT")
    got = {(await reader.row())[0], (await reader.row())[0]}
    assert got == {b"5", str(HIGH).encode()}
    (mine,) = [text for text in server.heard if "SKIP LOCKED" in text]
    assert "IN (5)" in mine  # a shard hears of its own rows only


async def test_a_rollback_wakes_nobody(server, messages):
    reader = await messages.client("commerce")
    reader.send("STREAM * FROM msg")
    await reader.head()
    writer = await messages.client("commerce")
    for sql in ("BEGIN", "INSERT INTO msg (id, message) VALUES (5, 'a')", "ROLLBACK"):
        await writer.query(sql)
    await writer.query("SELECT 1")
    assert not any("SKIP LOCKED" in text for text in server.heard)


async def test_a_broken_message_table_hurts_only_itself(server):
    add_message_table(server, comment="vitess_message,vt_ack_wait=0")
    async with running_proxy(server) as house:
        client = await house.client()
        for sql in (
            "SELECT * FROM msg",
            "INSERT INTO msg (id) VALUES (1)",
            "STREAM * FROM msg",
        ):
            for _ in range(2):
                result = await client.query(sql)
                assert result.message.startswith("message table 'msg' failed to load: ")
        assert (await client.query("SELECT * FROM t")).values == [b"1"]


async def test_a_generated_id_is_claimed_without_a_poll(server, messages):
    reader = await messages.client()
    reader.send("STREAM * FROM msg")
    await reader.head()
    server.once("INSERT", Ok(affected_rows=1, last_insert_id=77))
    server.once("FOR UPDATE SKIP LOCKED", Rows(tuple("abcde"), (claimed(77, b"m"),)))
    writer = await messages.client()
    asking = asyncio.ensure_future(reader.row())
    await writer.query("INSERT INTO msg (id, message) VALUES (77, 'a')")
    assert (await asking)[0] == b"77"
