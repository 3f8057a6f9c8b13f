import threading
import traceback
from contextlib import suppress

import pytest

from streamfrom.proxy.wire.constants import FieldType
from streamfrom.sqlparse_ext.text import tokens
from streamfrom.sqlparse_ext.text.chunks import LARGE_TEMPLATE_BYTES
from tests.cases import in_turn
from tests.proxy.fake_answers import Error, Rows
from tests.proxy.fake_client import Refused
from tests.proxy.keyspaces import HIGH
from tests.proxy.rigs import running_proxy, said


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


LONG = ", ".join(f"SUM(n + {number})" for number in range(400))


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {LONG} FROM t",
        f"SELECT n FROM t GROUP BY n HAVING {LONG.replace(',', ' AND')}",
        f"SELECT x.n FROM (SELECT n, {LONG} FROM t) AS x",
        f"SELECT {LONG} FROM t UNION SELECT {LONG} FROM t",
        f"SELECT DATABASE(), CONNECTION_ID(), {LONG} FROM t",
        f"SELECT {LONG} FROM information_schema.tables WHERE table_schema = 'commerce'",
        f"INSERT INTO t SELECT {LONG} FROM t",
        f"UPDATE t SET n = 1 WHERE {LONG.replace('SUM', '').replace(',', ' OR')}",
        f"DELETE FROM t WHERE {LONG.replace('SUM', '').replace(',', ' OR')}",
        f"REPLACE INTO t (n) VALUES ({LONG})",
        f"WITH x AS (SELECT {LONG} FROM t) SELECT * FROM x",
        f"SELECT n FROM t WHERE id IN (SELECT {LONG} FROM t)",
        f"SELECT t.n FROM t JOIN t AS u ON t.id = u.id AND {LONG.replace(',', ' AND')}",
        f"SELECT DISTINCT {LONG} FROM t ORDER BY {LONG} LIMIT 5",
        f"SELECT GROUP_CONCAT({LONG}) FROM t GROUP BY n WITH ROLLUP",
        f"SELECT n FROM t UNION SELECT {LONG} FROM u",
        f"SET STATEMENT lock_wait_timeout = 1 FOR SELECT {LONG} FROM t",
        f"CALL p({LONG})",
        f"ALTER TABLE t ADD ({LONG.replace('SUM(n + ', 'c').replace(')', ' INT')})",
        f"STREAM id FROM t WHERE {LONG}",
        f"SET @a = ({LONG})",
        f"SHOW TABLES WHERE {LONG.replace(',', ' AND')}",
        f"EXPLAIN SELECT {LONG} FROM t",
        f"VEXPLAIN PLAN SELECT {LONG} FROM t",
        f"PREPARE p FROM 'SELECT {LONG} FROM t'",
        f"DO {LONG}",
        f"CREATE TABLE x ({LONG.replace('SUM(n + ', 'c').replace(')', ' INT')})",
        f"CREATE QUEUE x ({LONG.replace('SUM(n + ', 'c').replace(')', ' INT')})",
        f"SELECT 1; SELECT {LONG} FROM t",
    ],
    ids=lambda sql: sql[:12],
)
@pytest.mark.parametrize("target", ["commerce", "plain"])
async def test_a_long_template_is_never_read_on_the_loop(client, monkeypatch, sql, target):
    loop, read_here, token = threading.get_ident(), [], tokens.Token

    def noted(key, start, *rest):
        if start > LARGE_TEMPLATE_BYTES and threading.get_ident() == loop:
            read_here.append("".join(traceback.format_stack(limit=8)))
        return token(key, start, *rest)

    await client.query(f"USE {target}")
    monkeypatch.setattr(tokens, "Token", noted)
    for _ in range(2):
        await client.query(sql)
    with suppress(Refused):
        await client.execute((await client.prepare(sql))[0])
    assert not read_here, read_here[0]


async def test_an_open_comment_behind_many_is_refused_at_once(client):
    """Each comment more would double the time of a pattern that tries all ways to read them."""
    found = await client.query("/**/" * 200 + "/*")
    assert found.error is not None
    assert "a comment has no end" in str(found.error)


@pytest.fixture
async def plain(server):
    found = Rows(("schema_name",), ((b"db",), (b"beside",)), types=(FieldType.VAR_STRING,))
    server.on("information_schema.schemata", found)
    async with running_proxy(server) as made:
        yield made


async def test_from_there_the_schema_of_the_proxy_can_be_used(server, plain):
    client = await plain.client("beside")
    for name in ("streamfrom", "streamfrom", "information_schema", "streamfrom", "plain"):
        assert (await client.query(f"USE {name}")).ok is not None
    assert (await client.query("SELECT 1")).values == [b"1"]
    assert server.relays[0].database == "db"


async def test_without_a_keyspace_databases_are_made_and_used_next_to_the_first_unsharded_one(
    server, other_server, proxy
):
    found = Rows(("schema_name",), ((b"beside",),), types=(FieldType.VAR_STRING,))
    server.on("information_schema.schemata", found)
    client = await proxy.client(None)  # the first keyspace is `commerce`, on two shards
    statements = [
        "CREATE DATABASE beside",
        "SHOW CREATE TABLE beside.t",
        "SELECT * FROM beside.t",
        "DROP TABLE beside.t",
        "USE beside",
        "SELECT * FROM t",
    ]
    for sql in statements:
        assert (await client.query(sql)).error is None
    assert (await (await proxy.client("beside")).query("SELECT 1 FROM t")).error is None
    statements.remove("USE beside")
    assert [sql for sql in said(server) if sql in statements] == statements
    assert not set(statements) & set(said(other_server))
    assert server.relays[-1].database == "beside"


@in_turn
@pytest.mark.parametrize("name", ["Beside", "nowhere", "beside2", ""])
async def test_what_no_server_has_is_unknown(plain, name):
    client = await plain.client("plain")
    assert (await client.query(f"USE `{name}`" if name else "USE ``")).code in (1049, 1064)
    assert (await client.command(b"\x02" + name.encode())).code == 1049
    assert (await client.query("SELECT 1")).values == [b"1"]


@pytest.mark.parametrize("start", ["commerce", "commerce:80-"])
async def test_the_name_that_database_returns_leads_to_where_the_session_is(
    server, other_server, proxy, start
):
    client = await proxy.client(start)
    for name in ("shop", "information_schema", "shop"):
        assert (await client.query(f"USE {name}")).error is None
    assert (await client.query("SELECT * FROM shop.t; SELECT * FROM t")).error is None
    assert said(other_server)[-1] == "SELECT * FROM t"
    client = await proxy.client("plain")
    assert (await client.query("USE db")).error is None
    assert (await client.query("SELECT * FROM plain.t, t b")).error is None
    assert (await client.query("USE nowhere")).code == 1049
