"""What restricted users may not do, each statement of an attack by its name: the server says what became of it."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import mysql.connector
import pymysql
import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import ServerPool, root
from tests.fixtures.streams import eventually, rows, run
from tests.integration.confined_statements import (
    ACCOUNTS,
    ASKS,
    BEHIND_COMMENTS,
    INTO,
    OTHER,
    READ,
    STARTS,
    TOLD,
    WRITES,
    WROTE,
)
from tests.integration.walled_servers import HIDDEN, SECRET, Walls, is_told, walls


pytestmark = pytest.mark.db


@pytest.fixture(scope="module")
def walled(
    server_pool: ServerPool, family: Family, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Walls]:
    yield from walls(server_pool.server(family, 0), tmp_path_factory.mktemp("walls"))


@pytest.fixture
def cluster(walled: Walls) -> Iterator[Walls]:
    """The cluster, as it was built, and as it must be found afterwards."""
    before, account = walled.state(), walled.account()
    logged = len(walled.proxy.log())
    yield walled
    changed = walled.state() != before
    walled.clients.clear()
    walled.proxy.disconnect()
    if changed:
        walled.build()
    assert walled.account() == account
    assert "internal error" not in walled.proxy.log()[logged:]
    assert not changed


def numbered(texts: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("text", texts, ids=lambda text: text[:60])


def test_who_may_read_the_secret_finds_it(cluster: Walls) -> None:
    assert SECRET in cluster.say("boss", "SELECT s FROM BETA.secret")


@numbered(BEHIND_COMMENTS + WRITES + INTO)
def test_a_reader_changes_nothing(cluster: Walls, text: str) -> None:
    for user in ("reader", "areader", "consumer", "producer"):
        assert not is_told(user, cluster.say(user, text))
        assert "None" in cluster.say(user, "SELECT @wv")


@numbered(READ)
def test_beta_is_not_read(cluster: Walls, text: str) -> None:
    for user in ("areader", "awriter", "narrow", "consumer", "producer"):
        assert not is_told(user, cluster.say(user, text))


@numbered(OTHER)
def test_a_table_that_is_not_the_users_is_not_read(cluster: Walls, text: str) -> None:
    for user in ("narrow", "producer"):
        seen = cluster.say(user, text)
        assert HIDDEN not in seen, (user, seen)


@numbered(WROTE)
def test_beta_is_not_written(cluster: Walls, text: str) -> None:
    for user in ("awriter", "narrow", "reader"):
        assert not is_told(user, cluster.say(user, text))


@numbered(TOLD)
def test_beta_is_not_told_of(cluster: Walls, text: str) -> None:
    for user in ("areader", "awriter", "narrow"):
        seen = cluster.say(user, text)
        assert "Error" in seen, seen
        assert "secret" not in seen.replace(cluster.sql(text), "").replace("'secret'", ""), seen


@numbered(ACCOUNTS)
def test_nobody_reaches_the_account_on_the_server(cluster: Walls, text: str) -> None:
    for user in ("boss", "writer", "awriter", "reader"):
        cluster.say(user, text)


def test_a_user_of_a_keyspace_ends_no_prepared_transaction_of_another(cluster: Walls) -> None:
    name = f"'{cluster.beta}'"
    with root(cluster.server, database=cluster.beta) as connection:
        run(connection, f"XA START {name}")
        run(connection, "INSERT INTO secret VALUES (77, 'prepared')")
        run(connection, f"XA END {name}")
        run(connection, f"XA PREPARE {name}")

    def ended() -> bool:
        # On MariaDB it is anybody's once its connection is gone for good, a moment later.
        with suppress(pymysql.MySQLError):
            cluster.direct(f"XA ROLLBACK {name}")
            return True
        return False

    for user in ("awriter", "narrow"):
        for text in ("XA RECOVER", f"XA COMMIT {name}", f"XA ROLLBACK {name}"):
            assert "denied" in cluster.say(user, text), (user, text)
    eventually(ended)


def test_nobody_sees_the_hash_of_a_password(cluster: Walls) -> None:
    for user in ("boss", "writer", "awriter", "reader"):
        for text in (
            "SELECT * FROM mysql.user",
            "USE mysql; TABLE user",
            "EXPLAIN SELECT * FROM mysql.user WHERE authentication_string LIKE '*1%'",
            "SET @h = (SELECT authentication_string FROM mysql.user LIMIT 1)",
            "INSERT INTO t SELECT 9, authentication_string, 1 FROM mysql.user",
            "EXECUTE IMMEDIATE 'SELECT authentication_string FROM mysql.user'",
            "EXECUTE IMMEDIATE 'SHOW GRANTS'",
            "PREPARE z FROM 'SHOW GRANTS FOR CURRENT_USER()'",
            "SET @q = 'SHOW GRANTS'; PREPARE z FROM @q",
            "PREPARE z FROM 'SHOW PROCESSLIST'",
            "BEGIN NOT ATOMIC SHOW GRANTS; END",
            "CREATE PROCEDURE pg() SHOW GRANTS",
        ):
            seen = cluster.say(user, text)
            assert "Error" in seen, (user, text, seen)
    cluster.clients.clear()
    assert cluster.say("boss", "SELECT COUNT(*) >= 0 FROM mysql.db") == "((1,),)"
    assert cluster.say("boss", "SELECT COUNT(*) > 0 FROM mysql.user") == "((1,),)"


def test_names_of_locks_that_the_proxy_takes_are_not_for_restricted_users(
    cluster: Walls,
) -> None:
    for user in ("reader", "areader", "awriter", "narrow", "producer", "consumer"):
        for name in (
            "'streamfrom'",
            "'STREAMFROM/x'",
            "CONCAT('stream', 'from')",
            "@a",
            "0x73",
        ):
            seen = cluster.say(user, f"SELECT GET_LOCK({name}, 0)")
            assert "denied" in seen, (user, name, seen)
        assert cluster.say(user, f"SELECT GET_LOCK('job of {user}', 0)") == "((1,),)"


@numbered(READ + WROTE + ACCOUNTS)
def test_prepared_it_is_the_same(cluster: Walls, text: str) -> None:
    for user in ("areader", "awriter"):
        client = mysql.connector.connect(
            host="127.0.0.1", port=cluster.proxy.port, user=user, password="x",
            database=cluster.alpha, autocommit=True, ssl_disabled=True,
        )  # fmt: skip
        for part in cluster.sql(text).split("; "):
            cursor = client.cursor(prepared=True)
            try:
                cursor.execute(part)
                seen = repr(cursor.fetchall())
            except mysql.connector.Error as error:
                seen = repr(error)
            assert not is_told(user, seen), seen
            cursor.close()
        client.close()


@pytest.mark.parametrize("of", ["NAMES", "character_set_connection ="])
@pytest.mark.parametrize("charset", ["gbk", "big5", "sjis", "swe7"])
def test_what_is_prepared_is_read_as_the_server_reads_it(
    cluster: Walls, charset: str, of: str
) -> None:
    client = cluster.client("awriter")
    run(client, f"SET {of} {charset}")
    for text in (
        rb"""'SELECT "a\\", s FROM BETA.secret -- "'""",
        rb"""'SELECT \'LEAD\\\\', s FROM BETA.secret -- \''""",
        rb"""N'SELECT "LEAD\\\", s FROM BETA.secret -- "'""",
        rb"""N'SELECT "LEAD\", ", s FROM BETA.secret -- "'""",
        rb"""_utf8mb4'SELECT \'LEAD\\\\', s FROM BETA.secret -- \''""",
        rb"""'SELECT `LEAD`, s `, ` FROM BETA.secret -- `'""",
    ):
        for lead in (b"\x83", b"\xa5"):
            with suppress(pymysql.MySQLError):
                found = text.replace(b"BETA", cluster.beta.encode()).replace(b"LEAD", lead)
                client.query(b"PREPARE q FROM " + found)
                assert SECRET not in repr(rows(client, "EXECUTE q"))


@pytest.mark.parametrize("user", ["areader", "awriter"])
@pytest.mark.parametrize("size", [0, 40_000])
def test_a_string_of_the_national_character_set_ends_where_the_server_ends_it(
    cluster: Walls, user: str, size: int
) -> None:
    """A backslash escapes in it, as in any other."""
    start = f"SELECT '{'x' * size}', "
    for text in (
        r"N'\', ', (SELECT s FROM BETA.secret) -- '",
        r"n'a\', (SELECT s FROM BETA.secret), '",
        r"N'''\', ', (SELECT s FROM BETA.secret) -- '",
        r"N'b\\', (SELECT s FROM BETA.secret), ' '",
    ):
        assert SECRET not in cluster.say(user, start + text)
    assert "it's" in cluster.say(user, start + r"N'it\'s'")


@pytest.mark.parametrize("charset", ["euckr", "gb2312", "ujis", "gbk", "sjis", "cp932"])
def test_half_a_character_swallows_no_quote_of_what_is_prepared(
    cluster: Walls, charset: str
) -> None:
    client = cluster.client("awriter")
    client.query(b"SET NAMES " + charset.encode())
    for lead in (b"\x80", b"\x81", b"\x8f", b"\x95", b"\xe0", b"\xfc", b"\xfe", b"\xff"):
        for text in (
            b"PREPARE q FROM \"SELECT 'LEAD', ', (SELECT s FROM BETA.secret) -- '\"",
            b'PREPARE q FROM \'SELECT "LEAD", ", (SELECT s FROM BETA.secret) -- "\'',
        ):
            with suppress(pymysql.MySQLError):
                client.query(
                    text.replace(b"BETA", cluster.beta.encode()).replace(b"LEAD", lead)
                )
                assert SECRET not in repr(rows(client, "EXECUTE q"))


@pytest.mark.parametrize("step", ["", "PREPARE p FROM ", "EXECUTE IMMEDIATE "])
@pytest.mark.parametrize("what", ["SELECT 1", "DO 1"])
def test_what_is_set_for_one_statement_is_not_taken_for_the_sessions(
    cluster: Walls, step: str, what: str
) -> None:
    client = cluster.client("awriter")
    for value in ('sql_mode="NO_BACKSLASH_ESCAPES"', 'time_zone="+05:00"'):
        text = f"SET STATEMENT {value} FOR {what}"
        # Not of MySQL; and what is prepared may not set what decides how texts are read.
        with suppress(pymysql.MySQLError):
            run(client, f"{step}'{text}'" if step else text)
            if step.startswith("PREPARE"):
                run(client, "EXECUTE p")
    for text in (
        r"SELECT 'q''\'' , s FROM BETA.secret -- '",
        r"SELECT 'a', 'b\'', s FROM BETA.secret -- '",
    ):
        assert SECRET not in cluster.say("awriter", text)
    other = cluster.client("boss")
    run(other, "BEGIN")
    run(other, "SELECT * FROM t FOR UPDATE")
    assert rows(client, "SELECT @@time_zone") == (("SYSTEM",),)
    run(other, "ROLLBACK")


@numbered(STARTS)
def test_whoever_may_enter_may_live(cluster: Walls, text: str) -> None:
    for user in ("areader", "awriter", "narrow", "producer", "consumer", "reader"):
        seen = cluster.say(user, text)
        assert "Error" not in seen, (user, seen)


def test_keyspaces_and_servers_are_told_to_those_who_may_use_them(cluster: Walls) -> None:
    for text in ("SHOW KEYSPACES", "SHOW VITESS_SHARDS", "SHOW VITESS_TABLETS"):
        of_one, of_all = cluster.say("areader", text), cluster.say("reader", text)
        assert (cluster.alpha in of_one, cluster.beta in of_one) == (True, False), of_one
        assert cluster.alpha in of_all
        assert cluster.beta in of_all
    assert "Error" in cluster.say("producer", "SHOW VITESS_TABLETS")


@numbered(ASKS)
def test_what_tools_ask_of_their_own_keyspace_is_answered(cluster: Walls, text: str) -> None:
    for user in ("areader", "awriter", "consumer", "reader"):
        seen = cluster.say(user, text)
        assert "Error" not in seen, (user, seen)


def test_a_producer_and_a_consumer_do_their_work(cluster: Walls) -> None:
    insert = "INSERT INTO msg (id, time_next, message) VALUES (77, 9000000000000000000, '1')"
    assert cluster.say("producer", insert) == "[]"
    assert "Error" in cluster.say("producer", "SELECT * FROM msg")
    assert cluster.say("consumer", "UPDATE msg SET priority = 3 WHERE id = 77") == "[]"
    assert cluster.direct("SELECT priority FROM ALPHA.msg WHERE id = 77") == ((3,),)
    assert "Error" in cluster.say("consumer", "DELETE FROM msg WHERE id = 77")
    cluster.direct("DELETE FROM ALPHA.msg WHERE id = 77")


def test_a_keyspace_of_ones_own_can_be_dumped(cluster: Walls) -> None:
    program = shutil.which("mariadb-dump") or shutil.which("mysqldump")
    if program is None:
        pytest.skip("no dump program on this machine")
    done = subprocess.run(
        [program, "-h127.0.0.1", f"-P{cluster.proxy.port}", "-uareader", "-px",
         "--single-transaction", "--skip-lock-tables", "--no-tablespaces", cluster.alpha],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "'three'" in done.stdout
