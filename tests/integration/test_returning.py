"""INSERT, REPLACE and DELETE … RETURNING over shards, whose answers are those of one server."""

import pytest

from streamfrom.proxy.embedded.servers import Family
from streamfrom.proxy.wire.resultset import parse_column_definition
from tests.cases import cases, in_turn
from tests.fixtures.running_proxy import MESSAGE_VSCHEMA, keyspace_toml, write_vschema
from tests.fixtures.streams import refused, refuses, rows, run, value
from tests.integration.scatter import ComparedCluster, ask, check, differences, parse_binary_row
from tests.proxy.fake_client import Client, Result, talk


pytestmark = pytest.mark.db

COLUMNS = (
    "id BIGINT PRIMARY KEY, u INT UNIQUE, s VARCHAR(5), f FLOAT, d DOUBLE, n DECIMAL(9,4),"
    " t DATETIME(3), b BLOB"
)
VALUES = ", ".join(
    f"({ident}, {ident * 10}, 's{ident}', {ident}.1234567, {ident}/7, {ident}.5,"
    f" '2026-01-0{ident} 10:00:00.{ident}', x'00ff0{ident}')"
    for ident in (7, 1, 4, 2, 8, 3)
)


@pytest.fixture(autouse=True)
def mariadb_alone(family: Family, request: pytest.FixtureRequest) -> None:
    is_of_mysql = request.function is test_mysql_says_what_it_says_itself
    if is_of_mysql is (family is Family.MARIADB):
        pytest.skip("MySQL has no RETURNING")


@pytest.fixture
def table(compared: ComparedCluster) -> ComparedCluster:
    compared.create(COLUMNS)
    return compared


def test_rows_come_in_the_order_in_which_they_were_given(table: ComparedCluster) -> None:
    check(
        table,
        f"INSERT INTO t VALUES {VALUES} RETURNING *",
        "SELECT * FROM t ORDER BY id",
        "INSERT INTO t (id, s) VALUES (30, 'a'), (10, 'b'), (40, NULL) RETURNING id + 1 AS n, s, UPPER(s)",
        "REPLACE INTO t (id, s) VALUES (7, 'x'), (1, 'y'), (99, 'z'), (4, 'w') RETURNING id, s",
        "INSERT INTO t (id, s) VALUES (7, 'p'), (1, 'q'), (98, 'r'), (4, 's')"
        " ON DUPLICATE KEY UPDATE s = CONCAT(s, VALUES(s)) RETURNING id, s, LAST_INSERT_ID()",
        "SELECT * FROM t ORDER BY id",
    )


def test_rows_that_were_not_inserted_are_not_returned_and_warn(table: ComparedCluster) -> None:
    table.run(f"INSERT INTO t VALUES {VALUES}")
    ignored = (
        "INSERT IGNORE INTO t (id, s) VALUES (7, 'a'), (20, 'b'), (1, 'c'), (21, 'd'), (22, 'e'),"
        " (23, 'f') RETURNING id, s"
    )
    theirs, warned = ask(table.direct, ignored), ask(table.direct, "SHOW WARNINGS")
    assert len(theirs.rows) == 4
    for connection in table.spread.values():
        mine = ask(connection, ignored)
        assert not differences(mine, theirs, types=False)
        assert sorted(mine.rows) == sorted(theirs.rows)
        assert sorted(ask(connection, "SHOW WARNINGS").rows) == sorted(warned.rows)
    check(table, "SELECT id, s FROM t ORDER BY id")


def test_deleted_rows_are_returned(table: ComparedCluster) -> None:
    table.run(f"INSERT INTO t VALUES {VALUES}")
    check(
        table,
        "DELETE FROM t WHERE id IN (7, 1, 3) RETURNING id, s",
        "DELETE FROM t WHERE s = 'none' RETURNING *",
        "DELETE FROM t RETURNING id, f, d, n, t, b",
        "SELECT COUNT(*) FROM t",
        in_order=False,
    )


def test_rows_that_are_read_first_are_returned(table: ComparedCluster) -> None:
    table.create(COLUMNS, "u")
    table.run("INSERT INTO u (id, u, s) VALUES (1,4,'a'), (2,5,'b'), (3,6,'c'), (4,7,'d')")
    check(
        table,
        "INSERT INTO t (id, s) SELECT u, s FROM u ORDER BY u RETURNING id, s",
        "INSERT INTO t (id, s) SELECT u + 100, s FROM u WHERE s > 'x' RETURNING id, s AS told",
        "INSERT INTO t (id, s) (SELECT id + 50, s FROM u WHERE id < 3 ORDER BY id) RETURNING *",
        "REPLACE INTO t (id, s) SELECT MAX(u), MAX(s) FROM u RETURNING id, s",
        "SELECT id, s FROM t ORDER BY id",
    )
    check(table, "INSERT INTO t (id, s) SELECT id, s FROM u RETURNING id, s", in_order=False)


@in_turn
@cases(sql=str)
def test_what_one_shard_cannot_know_is_refused(table: ComparedCluster, sql: str) -> None:
    table.create(COLUMNS, "u")
    for connection in table.spread.values():
        assert refused(connection, sql)[0] == 1235
        assert value(connection, "SELECT COUNT(*) FROM t") == 0


def test_it_belongs_to_the_transaction(table: ComparedCluster) -> None:
    insert = "INSERT INTO t (id, s) VALUES (1, 'a'), (4, 'b'), (2, 'c') RETURNING id"
    table.run("BEGIN")
    check(table, insert)
    for connection in table.spread.values():
        # The part that had succeeded is undone, and the transaction goes on.
        again = "INSERT INTO t (id, s) VALUES (3, 'x'), (4, 'y'), (9, 'z') RETURNING id"
        assert refused(connection, again)[0] == 1062
    check(table, "SELECT COUNT(*) FROM t")
    table.run("ROLLBACK")
    check(table, "SELECT COUNT(*) FROM t", insert, "SELECT id FROM t ORDER BY id")


def test_rows_beyond_the_memory_undo_it_all(servers, sharded_database, start_proxy, tmp_path):
    vschema = write_vschema(tmp_path, MESSAGE_VSCHEMA)
    keyspace = keyspace_toml("ks", servers, sharded_database, vschema)
    proxy = start_proxy(f'[server]\nlisten = "127.0.0.1:0"\nmerge_memory = 20000\n{keyspace}')
    client = proxy.connect(database="ks", autocommit=True)
    run(client, "CREATE TABLE my_message (id BIGINT PRIMARY KEY)")
    on_both, on_one = (
        f"INSERT INTO my_message VALUES {values} RETURNING id, REPEAT('x', 15000)"
        for values in ("(1), (4)", "(1), (2), (3), (4)")
    )
    for sql in (on_both, on_one):
        refuses(client, sql, 1038, "take more than 20000 bytes, so nothing was written")
    run(client, "BEGIN")
    run(client, "INSERT INTO my_message VALUES (7)")
    assert refused(client, on_both)[0] == 1038
    assert rows(client, "SELECT id FROM my_message") == ((7,),)
    run(client, "COMMIT")
    small = "INSERT INTO my_message VALUES (1), (4), (2) RETURNING id, REPEAT('x', 2)"
    assert rows(client, small) == ((1, "xx"), (4, "xx"), (2, "xx"))
    assert value(client, "SELECT COUNT(*) FROM my_message") == 4


def test_prepared_statements_give_binary_rows(client, cluster, keyspace, consume):
    run(client, "CREATE QUEUE my_message (user_id BIGINT, ratio FLOAT,)")
    run(client, "CREATE TABLE item (id BIGINT PRIMARY KEY, ratio FLOAT)")
    stream = consume(cluster.proxy, database=keyspace)

    async def work(client: Client) -> None:
        def decoded(result: Result) -> list[tuple[bytes | None, ...]]:
            assert result.error is None
            columns = [parse_column_definition(each) for each in client.definitions]
            return [parse_binary_row(columns, payload) for (payload,) in result.rows if payload]

        # A FLOAT in full: its text has six digits.
        insert = "INSERT INTO item (id, ratio) VALUES (?, 0.123456789), (?, 2), (?, 3) RETURNING id, ratio"
        statement, _, _ = await client.prepare(insert)
        found = decoded(await client.execute(statement, 7, 1, 4))
        assert found == [(b"7", b"0.12345679104328156"), (b"1", b"2.0"), (b"4", b"3.0")]
        assert (await client.execute(statement, 8, 2, 4)).code == 1062
        assert decoded(await client.execute(statement, 8, 2, 3))[0][0] == b"8"
        delete, _, _ = await client.prepare("DELETE FROM item WHERE ratio > ? RETURNING id")
        assert sorted(decoded(await client.execute(delete, 2))) == [(b"3",), (b"4",)]

        queued = "INSERT INTO my_message (user_id, ratio) VALUES (?, 0.123456789) RETURNING user_id, id, ratio"
        statement, _, _ = await client.prepare(queued)
        ids = []
        for user_id in range(4):
            ((user, ident, ratio),) = decoded(await client.execute(statement, user_id))
            assert (user, ratio) == (b"%d" % user_id, b"0.12345679104328156")
            assert (await client.query("SELECT LAST_INSERT_ID()")).values == [ident]
            ids.append(int(ident or 0))
        assert sorted(stream.ids(4)) == sorted(ids) == ids

    talk(cluster.proxy.port, work, database=keyspace)


def test_mysql_says_what_it_says_itself(client):
    run(client, "CREATE TABLE item (id BIGINT PRIMARY KEY)")
    for statement in ("INSERT INTO item (id) VALUES (1), (4)", "DELETE FROM item"):
        refuses(client, f"{statement} RETURNING id", 1064, "You have an error in your SQL")
    assert rows(client, "SELECT * FROM item") == ()
