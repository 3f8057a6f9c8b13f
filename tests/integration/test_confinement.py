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


# F1: a comment that only one of the two reads.
BEHIND_COMMENTS = [
    "/*!50700 SELECT */ DELETE FROM t",
    "/*!50701 SHOW */ INSERT INTO t VALUES (99, 'w', 0)",
    "/*!80000 EXPLAIN */ DELETE FROM t",
    "/*!50700 SET @a=1 */ DELETE FROM t",
    "/*!50700 SAVEPOINT a */ DELETE FROM t",
    "/*!50700 SELECT */ DROP TABLE other",
    "/*!50700 SELECT */ TRUNCATE t",
    "/*M! SELECT */ DELETE FROM t",
    "/*!99999 SELECT */ DELETE FROM t",
    "/*!999999 /* */ SELECT 1 -- */ DELETE FROM t",
    "USE `ALPHA:0`; /*!50700 SELECT */ DELETE FROM t",
    "SELECT 1 /*!50700 -- */ INTO @a",
    "/*! DELETE */ FROM t",
    "SELECT /*+ '*/ 1 -- ' */ 2; DELETE FROM t",
]
# F8, and what else a reader may not.
WRITES = [
    "DELETE FROM t",
    "WITH x AS (SELECT 1) DELETE FROM t",
    "EXPLAIN ANALYZE DELETE FROM t",
    "ANALYZE DELETE FROM t",
    "SET STATEMENT max_statement_time=1 FOR DELETE FROM t",
    "EXECUTE IMMEDIATE 'DELETE FROM t'",
    "PREPARE z FROM 'DELETE FROM t'",
    "BEGIN NOT ATOMIC DELETE FROM t; END",
    "SELECT NEXTVAL(seq)",
    "SELECT NEXT VALUE FOR seq",
    "SELECT SETVAL(seq, 1000)",
    "SET @x = NEXTVAL(seq)",
    "SELECT 1 WHERE NEXTVAL(seq)",
    "DO NEXTVAL(seq)",
    "SET sql_mode = ORACLE; SELECT seq.nextval",
    "SET sql_mode = ORACLE; SELECT seq.nextval FROM seq",
]
# F4: INTO wherever it stands.
INTO = [
    "WITH x AS (SELECT 5 a) SELECT a INTO @wv FROM x",
    "WITH x AS (SELECT 5 a) SELECT a FROM x INTO @wv",
    "SELECT 5 INTO @wv",
    "(SELECT 5 INTO @wv)",
    "SELECT 5 UNION SELECT 5 INTO @wv",
    "EXPLAIN FORMAT=JSON INTO @wv SELECT 1",
    "TABLE t LIMIT 1 INTO @wv",
]
# F3: what a user of alpha may not see of beta. READ by readers and writers, WROTE by writers.
READ = [
    "SET @x=(SELECT s FROM BETA.secret); SELECT @x",
    "SET time_zone=(SELECT s FROM BETA.secret)",
    "SET character_set_client=(SELECT s FROM BETA.secret)",
    "SET default_storage_engine=(SELECT s FROM BETA.secret)",
    "SHOW VARIABLES WHERE extractvalue(1,concat(0x7e,(SELECT s FROM BETA.secret)))",
    "SHOW STATUS WHERE extractvalue(1,concat(0x7e,(SELECT s FROM BETA.secret)))",
    "SHOW TABLES WHERE extractvalue(1,concat(0x7e,(SELECT s FROM BETA.secret)))",
    "SHOW COLUMNS FROM t WHERE extractvalue(1,concat(0x7e,(SELECT s FROM BETA.secret)))",
    "EXPLAIN SELECT extractvalue(1,concat(0x7e,(SELECT s FROM BETA.secret)))",
    "SELECT " + "1," * 1200 + "b.s FROM t a, BETA.secret b",
    "SELECT * FROM {OJ BETA.secret a LEFT JOIN t b ON 1}",
    "SELECT {d '2020-01-01'}, b.s FROM t a, BETA.secret b",
    "SELECT b.s FROM t a, BETA.secret b LIMIT ROWS EXAMINED 1000",
    "SELECT b.s FROM t a, BETA.secret b PROCEDURE ANALYSE()",
    "SELECT b.s FROM t a, BETA.secret b GROUP BY b.s ASC WITH ROLLUP",
    "SELECT NEXT VALUE FOR seq, b.s FROM BETA.secret b",
    "SELECT id, s FROM t WHERE id=1 /*!50700 -- */ UNION SELECT id,s FROM BETA.secret",
    "SELECT id, s FROM t WHERE id=1 /*M! -- */ UNION SELECT id,s FROM BETA.secret",
    "SELECT BETA.fn()",
    "SET @x=BETA.fn(); SELECT @x",
    "SELECT `BETA`.`fn`()",
    "SELECT BETA . fn ( )",
    "SELECT beta.fn FROM (SELECT BETA.fn() fn) beta",
    "SELECT BETA.fn() FROM t BETA",
    "EXECUTE IMMEDIATE 'SELECT s FROM BETA.secret'",
    "SET @q='SELECT s FROM BETA.secret'; EXECUTE IMMEDIATE @q",
    "SET @q='SELECT s FROM BETA.secret'; PREPARE z FROM @q; EXECUTE z",
    "PREPARE z FROM 'SELECT s FROM BETA.secret'; EXECUTE z",
    "EXECUTE IMMEDIATE CONCAT('SELECT s FROM BE', 'TA.secret')",
    "EXECUTE IMMEDIATE 'SET STATEMENT max_statement_time=1 FOR SELECT s FROM BETA.secret'",
    "PREPARE z FROM 'SET STATEMENT max_statement_time=1 FOR SELECT s FROM BETA.secret'; EXECUTE z",
    "SET STATEMENT max_statement_time=1 FOR EXECUTE IMMEDIATE 'SELECT s FROM BETA.secret'",
    "SET STATEMENT max_statement_time=1 FOR PREPARE z FROM 'SELECT s FROM BETA.secret'; EXECUTE z",
    "BEGIN NOT ATOMIC SELECT * FROM BETA.secret; END",
    "IF 1 THEN SELECT * FROM BETA.secret; END IF",
    "DO extractvalue(1,concat(0x7e,(SELECT s FROM BETA.secret)))",
    "CALL BETA.p()",
    "HANDLER BETA.secret OPEN; HANDLER secret READ FIRST",
    "KILL (SELECT s FROM BETA.secret)",
    "SELECT * FROM t PARTITION (p0), BETA.secret",
    "SELECT s FROM t JOIN (BETA.secret) USING (id)",
    "SELECT * FROM t USE INDEX FOR JOIN (PRIMARY), BETA.secret",
    "SELECT * FROM (t, BETA.secret)",
    "SELECT * FROM t window, BETA.secret",
    "SELECT * FROM t returning, BETA.secret",
    "SELECT * FROM t value, BETA.secret",
    "SELECT (SELECT s FROM BETA.secret)",
    "SELECT * FROM t WHERE s > ALL (TABLE BETA.secret)",
    "TABLE BETA.secret",
    "VALUES ROW((SELECT s FROM BETA.secret))",
    "WITH BETA AS (SELECT 1 x) SELECT * FROM BETA, BETA.secret",
    "SELECT * FROM t BETA, BETA.secret",
    "SELECT * FROM t ORDER BY (SELECT s FROM BETA.secret)",
    "SELECT GROUP_CONCAT(s ORDER BY (SELECT s FROM BETA.secret)) FROM t",
    "USE BETA; SELECT s FROM secret",
    "USE information_schema; SELECT * FROM BETA.secret",
    'SET sql_mode=ANSI_QUOTES; SELECT * FROM "BETA"."secret"',
    "SET sql_mode=MSSQL; SELECT * FROM [BETA].[secret]",
    "SET NAMES latin1; SELECT\u00a0s\u00a0FROM\u00a0BETA.secret",
    "INSERT INTO t VALUES (500,'x',0) RETURNING (SELECT s FROM BETA.secret)",
    "REPLACE INTO t VALUES (1,'one',1) RETURNING (SELECT s FROM BETA.secret)",
]
# Names of a WITH that are not that of the table beside them.
OTHER = [
    "BEGIN; SELECT s FROM t; USE streamfrom; SET @h = (SELECT s FROM other); SELECT @h",
    "WITH Other AS (SELECT 1 AS s) SELECT s FROM other",
    "WITH other AS (SELECT * FROM other) SELECT * FROM other",
    "WITH a AS (SELECT * FROM other), other AS (SELECT 1) SELECT * FROM a",
    "SELECT s FROM other WHERE id IN (WITH other AS (SELECT 1 AS a) SELECT a FROM other)",
    "WITH x AS (WITH other AS (SELECT 1) SELECT * FROM other) SELECT * FROM x, other",
    "(WITH other AS (SELECT 1, 2) SELECT * FROM other) UNION ALL SELECT * FROM other",
]
WROTE = [
    "BEGIN; SELECT s FROM t; USE streamfrom; DELETE FROM other; COMMIT",
    "EXECUTE IMMEDIATE 'DELETE FROM BETA.secret'",
    "EXECUTE IMMEDIATE 'SET STATEMENT max_statement_time=1 FOR DELETE FROM BETA.secret'",
    "SET STATEMENT max_statement_time=1 FOR EXECUTE IMMEDIATE 'DELETE FROM BETA.secret'",
    "SET STATEMENT max_statement_time=1 FOR SET STATEMENT lock_wait_timeout=1 FOR"
    " EXECUTE IMMEDIATE 'DELETE FROM BETA.secret'",
    "ANALYZE DELETE FROM BETA.secret",
    "ALTER DATABASE BETA CHARACTER SET latin1",
    "CREATE TABLE fk (id INT, FOREIGN KEY (id) REFERENCES BETA.secret(id))",
    "CREATE TABLE m (id INT, s VARCHAR(40)) ENGINE=MRG_MyISAM UNION=(BETA.secret)",
    "CREATE TABLE m LIKE BETA.secret",
    "CREATE VIEW v AS SELECT * FROM BETA.secret",
    "CREATE PROCEDURE pp() SELECT s FROM BETA.secret",
    "CREATE FUNCTION ff() RETURNS INT RETURN (SELECT 1 FROM BETA.secret)",
    "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW DELETE FROM BETA.secret",
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM BETA.secret",
    "CREATE USER eve",
    "DROP FUNCTION BETA.fn",
    "RENAME TABLE t TO BETA.t",
    "ALTER TABLE t RENAME BETA.t",
    "ALTER TABLE t RENAME TO BETA.t",
    "TRUNCATE BETA.secret",
    "DROP TABLE BETA.secret",
    "DROP DATABASE BETA",
    "DELETE BETA.secret FROM t, BETA.secret",
    "UPDATE t, BETA.secret b SET b.s = 1",
    "INSERT INTO BETA.secret VALUES (2, 'x')",
    "SELECT SETVAL(BETA.seq, 99)",
    "SELECT NEXTVAL(BETA.seq)",
    "DO NEXTVAL(BETA.seq)",
    "SET GLOBAL init_connect = 'DELETE FROM BETA.secret'",
]
# What tells that there is something, and how much.
TOLD = [
    "EXPLAIN SELECT * FROM BETA.secret",
    "EXPLAIN ANALYZE SELECT * FROM BETA.secret",
    "DESCRIBE BETA.secret",
    "CHECKSUM TABLE BETA.secret",
    "CHECK TABLE BETA.secret",
    "ANALYZE TABLE t, BETA.secret",
    "SHOW CREATE TABLE BETA.secret",
    "SHOW TABLES FROM BETA",
    "SHOW TABLE STATUS IN BETA",
    "SHOW COLUMNS FROM secret FROM BETA",
    "SHOW INDEX IN secret IN BETA",
    "SHOW OPEN TABLES FROM BETA",
    "SHOW TRIGGERS FROM BETA",
    "SHOW CREATE DATABASE BETA",
    "SHOW FUNCTION STATUS",
    "SHOW PROCEDURE STATUS WHERE Db = 'BETA'",
    "SHOW CREATE PROCEDURE BETA.p",
    "SELECT * FROM information_schema.tables",
    "SELECT table_name FROM information_schema.tables WHERE table_schema <> DATABASE()",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'BETA'",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'ALPHA' OR 1",
    "SELECT table_name FROM information_schema.tables WHERE 1 BETWEEN 0 AND table_schema = 'ALPHA'",
    "SELECT table_name FROM information_schema.tables WHERE NOT table_schema = 'ALPHA'",
    "SELECT b.table_name FROM information_schema.tables a, information_schema.tables b"
    " WHERE a.table_schema = DATABASE()",
    "SELECT a.table_name FROM information_schema.tables a LEFT JOIN information_schema.tables b"
    " ON a.table_schema = 'ALPHA'",
    "SELECT schema_name FROM information_schema.schemata",
    "SET @v = 'BETA'; PREPARE z FROM 'SELECT table_name FROM information_schema.tables"
    " WHERE table_schema = ?'; EXECUTE z USING @v",
    "USE information_schema; SELECT table_name FROM columns",
    "SELECT * FROM information_schema.innodb_tables",
    "SELECT info FROM information_schema.processlist",
    "SELECT * FROM performance_schema.events_statements_history",
    "SELECT * FROM sys.schema_table_statistics",
]
# F2: the account that the proxy has on its servers, for every user.
ACCOUNTS = [
    "SET @a=1, PASSWORD=PASSWORD('attacker')",
    "SET autocommit=1, PASSWORD='*94BDCEBE19083CE2A1F959FD02F964C7AF4CFC29'",
    "SET NAMES utf8mb4, PASSWORD='*94BDCEBE19083CE2A1F959FD02F964C7AF4CFC29'",
    "SET @a=1, `PASSWORD` = 'x'",
    "SET @a=1, SESSION PASSWORD = 'x'",
    "SET PASSWORD FOR sf@'%' = PASSWORD('x')",
    "SET PASSWORD FOR sf = 'x'",
    "SET @a=1, PASSWORD FOR sf=PASSWORD('x')",
    "SET @a=1, ROLE NONE",
    "SET @a=1, DEFAULT ROLE NONE",
    "SET DEFAULT ROLE NONE TO sf",
    "SET STATEMENT max_statement_time=1 FOR SET PASSWORD = PASSWORD('x')",
    "SET STATEMENT max_statement_time=1 FOR SET @a=1, PASSWORD = PASSWORD('x')",
    "EXECUTE IMMEDIATE 'SET STATEMENT max_statement_time=1 FOR SET PASSWORD = PASSWORD(\\'x\\')'",
    "SET STATEMENT max_statement_time=1 FOR EXECUTE IMMEDIATE 'SET PASSWORD = PASSWORD(\\'x\\')'",
    "SET STATEMENT max_statement_time=1 FOR SET STATEMENT lock_wait_timeout=1 FOR SET PASSWORD ="
    " PASSWORD('x')",
    "ANALYZE UPDATE mysql.global_priv SET Priv = '{}' WHERE User = 'sf'",
    "ANALYZE FORMAT=JSON UPDATE mysql.global_priv SET Priv = '{}' WHERE User = 'sf'",
    "EXECUTE IMMEDIATE 'ANALYZE UPDATE mysql.global_priv SET Priv = 1'",
    "CALL sys.execute_prepared_stmt('ALTER USER sf IDENTIFIED BY \\'x\\'')",
    "USE sys; CALL `execute_prepared_stmt`('ALTER USER sf IDENTIFIED BY \\'x\\'')",
    "CREATE PROCEDURE pw() CALL sys.execute_prepared_stmt('ALTER USER sf IDENTIFIED BY \\'x\\'')",
    "CREATE USER ''@'127.0.0.1' IDENTIFIED BY 'x'",
    "CREATE USER IF NOT EXISTS nobody, ``@'127.0.0.1'",
    "GRANT USAGE ON *.* TO ''@'127.0.0.1' IDENTIFIED BY 'x'",
    "ALTER USER sf IDENTIFIED BY 'x'",
    "ALTER USER 'sf'@'%' IDENTIFIED BY 'x'",
    "ALTER USER `sf`@`%` ACCOUNT LOCK",
    "ALTER USER IF EXISTS nobody, sf IDENTIFIED BY 'x'",
    "ALTER USER CURRENT_USER IDENTIFIED BY 'x'",
    "ALTER USER USER() IDENTIFIED BY 'x'",
    "CREATE OR REPLACE USER sf IDENTIFIED BY 'x'",
    "RENAME USER sf TO sf2",
    "DROP USER nobody, 'sf'@'%'",
    "REVOKE ALL PRIVILEGES, GRANT OPTION FROM sf",
    "GRANT PROXY ON sf TO eve",
    "GRANT USAGE ON *.* TO sf IDENTIFIED BY 'x'",
    "EXECUTE IMMEDIATE 'ALTER USER sf IDENTIFIED BY \\'x\\''",
    "SET @q = 'SET PASSWORD = PASSWORD(1)'; EXECUTE IMMEDIATE @q",
    "SET @q = 'ALTER USER sf IDENTIFIED BY \\'x\\''; PREPARE z FROM @q; EXECUTE z",
    "PREPARE z FROM 'SET PASSWORD = \\'x\\''; EXECUTE z",
    "EXECUTE IMMEDIATE CONCAT('ALTER USER s', 'f IDENTIFIED BY 1')",
    "BEGIN NOT ATOMIC SET PASSWORD = PASSWORD('x'); END",
    "BEGIN NOT ATOMIC EXECUTE IMMEDIATE CONCAT('SET PASS', 'WORD = 1'); END",
    "IF 1 THEN ALTER USER sf IDENTIFIED BY 'x'; END IF",
    "CREATE PROCEDURE pw() SET PASSWORD = PASSWORD('x')",
    "CREATE PROCEDURE pw() ALTER USER sf IDENTIFIED BY 'x'",
    "CREATE EVENT pw ON SCHEDULE EVERY 1 DAY DO SET PASSWORD = PASSWORD('x')",
    "UPDATE mysql.global_priv SET Priv = '{}' WHERE User = 'sf'",
    "UPDATE mysql.user SET authentication_string = '' WHERE user = 'sf'",
    "USE mysql; DELETE FROM user WHERE user = 'sf'",
    "DELETE FROM `mysql` . `db`",
    "CREATE VIEW v AS SELECT * FROM mysql.global_priv",
    "/*! SET PASSWORD = PASSWORD('x') */",
]


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


def test_nobody_but_an_admin_makes_itself_a_member_of_the_fleet(cluster: Walls) -> None:
    row = "('feed', '', '127.0.0.1:1', 'my own certificate', 77, 'x', 'y', 0)"
    for user in ("writer", "awriter", "narrow", "producer", "consumer", "reader"):
        for text in (
            f"INSERT INTO streamfrom_members VALUES {row}",
            f"/*! REPLACE */ INTO ALPHA.`streamfrom_members` VALUES {row}",
            f"PREPARE z FROM 'INSERT INTO streamfrom_members VALUES {row.replace(chr(39), chr(39) * 2)}'; EXECUTE z",
            "DELETE FROM streamfrom_members",
            "UPDATE t JOIN streamfrom_members SET certificate = 'x'",
            "RENAME TABLE streamfrom_members TO mine",
            "CREATE VIEW mine AS SELECT * FROM streamfrom_members",
        ):
            # The account on the server may do it: the proxy has refused.
            assert "denied" in cluster.say(user, text), (user, text)


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


STARTS = [
    "USE information_schema; USE streamfrom; USE information_schema; USE ALPHA",
    "/*!40101 SET NAMES utf8 */",
    "/* mysql-connector-j-9.0 */SELECT @@session.auto_increment_increment AS"
    " auto_increment_increment, @@character_set_client AS character_set_client, @@sql_mode AS"
    " sql_mode, @@wait_timeout AS wait_timeout",
    "SET character_set_results = NULL",
    "SET sql_mode='STRICT_TRANS_TABLES'",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET @@session.autocommit = OFF",
    "SET autocommit=1",
    "SHOW VARIABLES LIKE 'sql_mode'",
    "SHOW COLLATION",
    "SHOW WARNINGS",
    "SELECT @@version, VERSION(), DATABASE(), CONNECTION_ID()",
    "SELECT CAST('test plain returns' AS CHAR(60)) AS anon_1",
    "SHOW DATABASES",
]
ASKS = [
    "SHOW FULL TABLES FROM `ALPHA`",
    "SHOW CREATE TABLE `t`",
    "DESCRIBE `ALPHA`.`t`",
    "SHOW TABLE STATUS LIKE 't'",
    "SHOW TRIGGERS LIKE 't'",
    "SHOW FIELDS FROM t",
    "SHOW INDEX FROM t FROM ALPHA",
    "SHOW CREATE DATABASE IF NOT EXISTS `ALPHA`",
    "SELECT /*!40001 SQL_NO_CACHE */ `id`, `s`, `n` FROM `t`",
    "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = DATABASE()",
    "SELECT TABLE_SCHEMA TABLE_CAT, COLUMN_NAME FROM INFORMATION_SCHEMA.COLUMNS"
    " WHERE TABLE_SCHEMA = 'ALPHA' AND TABLE_NAME = 't' ORDER BY ORDINAL_POSITION",
    "SELECT kc.column_name, kc.referenced_table_name FROM information_schema.key_column_usage AS kc"
    " WHERE kc.table_schema = DATABASE() AND kc.table_name = 't'",
    "SELECT kc.constraint_name, rc.update_rule FROM information_schema.key_column_usage kc"
    " JOIN information_schema.referential_constraints rc"
    " ON kc.constraint_schema = rc.constraint_schema AND kc.constraint_name = rc.constraint_name"
    " WHERE kc.table_schema = 'ALPHA'",
    "SELECT default_character_set_name FROM information_schema.schemata"
    " WHERE schema_name = 'ALPHA'",
    "SELECT a.id, b.s FROM t a LEFT JOIN ALPHA.other b ON a.id = b.id WHERE a.n > 0 ORDER BY a.id",
    "WITH x AS (SELECT id FROM t) SELECT COUNT(*) FROM x UNION ALL SELECT 1",
    "EXPLAIN SELECT * FROM t",
]


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
