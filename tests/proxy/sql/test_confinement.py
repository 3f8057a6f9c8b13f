"""What users who may not do everything can do, and what they cannot."""

import pytest

from streamfrom.proxy.config.file import Role, Secret, User
from streamfrom.proxy.errors import DatabaseAccessDenied, StatementRefused
from streamfrom.proxy.sql.confinement import confine
from streamfrom.proxy.sql.privileges import Privileges
from tests.sqlparse_ext.facts import statement


class Here:
    """A session in `alpha`, which has the message table `msg`, beside `beta`, which is not its own."""

    def __init__(self, keyspaces=None, schema=None):
        self.keyspaces = keyspaces
        self.schema = schema

    def home(self, schema):
        if schema is None:
            return None if self.schema else "alpha"
        known = schema in ("alpha", "beta")
        return schema if known and schema in (self.keyspaces or {"alpha", "beta"}) else None

    def is_message_table(self, keyspace, table):
        return (keyspace, table) == ("alpha", "msg")

    def has_state(self, keyspace, table):
        return table == "queue"


def say(sql, role=Role.READWRITE, keyspaces=None, tables=None, schema=None, **options):
    user = User("eve", Secret(""), None, role, keyspaces, None, tables)
    return confine(Privileges(user, "host"), statement(sql), Here(keyspaces, schema), **options)


ALPHA = frozenset({"alpha"})
TABLES = frozenset({(None, "t"), ("alpha", "u")})

OF_SESSIONS = [
    "SET NAMES utf8mb4",
    "SET autocommit = 0, @a = 1, SESSION sql_mode = 'ANSI'",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SELECT @@version, @@session.auto_increment_increment AS auto_increment_increment",
    "SELECT DATABASE(), CONNECTION_ID(), 1 + 1",
    "SHOW WARNINGS",
    "SHOW VARIABLES LIKE 'lower_case_%'",
    "SHOW SESSION STATUS",
    "SHOW DATABASES",
    "SHOW KEYSPACES LIKE 'a%'",
    "SHOW VITESS_KEYSPACES",
    "SHOW VITESS_TARGET",
    "USE alpha",
    "BEGIN",
    "SAVEPOINT a",
    "ROLLBACK TO SAVEPOINT a",
    "COMMIT",
    "KILL QUERY 5",
    "UNLOCK TABLES",
]
OF_READERS = [
    "SELECT * FROM t JOIN alpha.u USING (id) WHERE t.a = u.b ORDER BY t.a LIMIT 5",
    "WITH c AS (SELECT id FROM t) SELECT * FROM c",
    "SHOW FULL COLUMNS FROM t",
    "SHOW VITESS_TABLETS LIKE 'db%'",
    "SHOW CREATE TABLE alpha.t",
    "SHOW QUEUE PARTITIONS FROM alpha.t",
    "DESCRIBE t",
    "EXPLAIN SELECT * FROM t",
]
OF_WRITERS = [
    "INSERT INTO t (id) VALUES (1), (2) ON DUPLICATE KEY UPDATE id = VALUES(id)",
    "UPDATE alpha.t SET a = (SELECT MAX(b) FROM u) WHERE id = 1",
    "DELETE FROM t WHERE id IN (SELECT id FROM u)",
    "REPLACE INTO t SET id = 1",
    "PREPARE s FROM 'SELECT 1'",
    "EXECUTE s USING @a",
    "DEALLOCATE PREPARE s",
    "LOCK TABLES t READ, u WRITE",
    "TRUNCATE TABLE t",
    "OPTIMIZE TABLE t",
]
OF_OWNERS = [
    "CREATE TABLE v (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES t (id)) ENGINE=InnoDB",
    "CREATE TEMPORARY TABLE v AS SELECT * FROM t",
    "ALTER TABLE t ADD COLUMN x INT, RENAME TO w",
    "CREATE UNIQUE INDEX i ON t (a)",
    "CREATE OR REPLACE VIEW w AS SELECT t.a FROM t",
    "DROP TABLE IF EXISTS t, alpha.u",
    "RENAME TABLE t TO alpha.w",
    "SHOW TABLES",
    "SHOW TABLE STATUS FROM alpha LIKE 't'",
    "SELECT * FROM information_schema.tables WHERE table_schema = DATABASE()",
    "CALL p(1)",
]


@pytest.mark.parametrize("sql", OF_SESSIONS)
@pytest.mark.parametrize("role", list(Role))
def test_whoever_may_enter_may_live(sql, role):
    say(sql, role, ALPHA, TABLES)


@pytest.mark.parametrize("sql", OF_READERS)
@pytest.mark.parametrize("role", sorted(set(Role) - {Role.PRODUCER}))
def test_readers_read(sql, role):
    say(sql, role, ALPHA)
    say(sql, role, ALPHA, TABLES)


@pytest.mark.parametrize("sql", OF_WRITERS)
def test_writers_write_in_their_keyspaces_and_tables(sql):
    say(sql, keyspaces=ALPHA)
    say(sql, keyspaces=ALPHA, tables=TABLES)


@pytest.mark.parametrize("sql", OF_OWNERS)
def test_what_may_name_any_table_is_for_users_of_whole_keyspaces(sql):
    say(sql, keyspaces=ALPHA)
    with pytest.raises((StatementRefused, DatabaseAccessDenied)):
        say(sql, keyspaces=ALPHA, tables=TABLES)


@pytest.mark.parametrize(
    "sql", ["XA START 'a'", "XA COMMIT 'a'", "XA ROLLBACK X'61'", "XA RECOVER FORMAT='SQL'"]
)
def test_xa_whose_names_are_of_the_whole_server_is_for_users_of_all_keyspaces(sql):
    for narrowed in ({"keyspaces": ALPHA}, {"tables": TABLES}):
        with pytest.raises(StatementRefused, match="names of XA transactions"):
            say(sql, **narrowed)


@pytest.mark.parametrize("sql", OF_WRITERS)
@pytest.mark.parametrize("role", [Role.READONLY, Role.CONSUMER, Role.PRODUCER])
def test_a_role_that_does_not_write_does_not(sql, role):
    with pytest.raises(StatementRefused):
        say(sql, role)


def test_a_producer_inserts_messages_and_reads_nothing():
    say("INSERT INTO msg (id, message) VALUES (1, '{}')", Role.PRODUCER)
    for sql in (
        "INSERT INTO t (id) VALUES (1)",
        "INSERT INTO msg SELECT * FROM t",
        "INSERT INTO msg (id) VALUES ((SELECT 1 FROM t))",
        "INSERT INTO msg (id) VALUES (1) ON DUPLICATE KEY UPDATE id = 2",
        "REPLACE INTO msg (id) VALUES (1)",
        "UPDATE msg SET time_acked = 1800000000000000005 WHERE id = 1",
        "SELECT * FROM msg",
        "STREAM * FROM msg",
        "SHOW TABLES",
        "SHOW COLUMNS FROM msg",
        "SHOW VITESS_TABLETS",
        "DESCRIBE msg",
        "SET @a = (SELECT 1 FROM msg)",
    ):
        with pytest.raises(StatementRefused):
            say(sql, Role.PRODUCER)


def test_a_consumer_acknowledges_and_reschedules():
    for sql in (
        "STREAM * FROM msg",
        "UPDATE msg SET time_acked = 1800000000000000005 WHERE id = 1",
        "UPDATE msg SET time_next = 5, priority = 1, epoch = 0 WHERE id IN (1, 2)",
    ):
        say(sql, Role.CONSUMER)
    for sql in (
        "UPDATE msg SET message = '{}' WHERE id = 1",
        "UPDATE msg SET time_acked = 1800000000000000005, id = 2",
        "UPDATE t SET time_acked = 1800000000000000005",
        "UPDATE msg, t SET time_acked = 1800000000000000005",
        "INSERT INTO msg (id) VALUES (1)",
        "DELETE FROM msg",
        "SELECT * FROM msg FOR UPDATE",
        "TRUNCATE msg",
    ):
        with pytest.raises(StatementRefused):
            say(sql, Role.CONSUMER)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM other",
        "SELECT * FROM t, beta.t",
        "SELECT * FROM t WHERE id IN (SELECT id FROM other)",
        "INSERT INTO t SELECT * FROM other",
        "WITH other AS (SELECT 1) SELECT * FROM other, (SELECT * FROM u) x, alpha.other",
        "SELECT * FROM other, (WITH other AS (SELECT 1) SELECT * FROM other) x",
        "SHOW CREATE TABLE other",
        "SHOW COLUMNS FROM other",
        "SHOW QUEUE PARTITIONS FROM other",
        "DESCRIBE other",
        "STREAM * FROM other",
        "CALL p()",
        "SELECT * FROM information_schema.tables WHERE table_schema = DATABASE()",
        "LOCK TABLES other READ",
    ],
)
def test_tables_narrow_every_statement(sql):
    with pytest.raises((StatementRefused, DatabaseAccessDenied)):
        say(sql, keyspaces=ALPHA, tables=TABLES)


@pytest.mark.parametrize(
    "sql",
    [
        "LOAD DATA INFILE 'x' INTO TABLE t",
        "LOAD DATA LOCAL INFILE 'x' INTO TABLE t",
        "HANDLER t OPEN",
        "DO 1",
        "BEGIN NOT ATOMIC SELECT 1; END",
        "PREPARE s FROM @q",
        "EXECUTE IMMEDIATE @q",
        "SET GLOBAL init_connect = ''",
        "SET default_storage_engine = 'CONNECT'",
        "CREATE TABLE x (id INT) ENGINE=FEDERATED",
        "CREATE TABLE x (id INT) CONNECTION='mysql://a@b/c/d'",
        "CREATE PROCEDURE p() SELECT 1",
        "CREATE USER a",
        "ALTER DATABASE beta CHARACTER SET latin1",
        "FLUSH TABLES WITH READ LOCK",
        "SHOW OPEN TABLES",
        "SHOW ENGINE INNODB STATUS",
        "SELECT LOAD_FILE('x')",
        "SELECT * FROM mysql.user",
        "SELECT * FROM performance_schema.threads",
        "EXPLAIN FOR CONNECTION 5",
        "SET STATEMENT max_statement_time = (SELECT 1) FOR SELECT 1",
        "gibberish",
    ],
)
def test_what_is_not_on_the_list_is_refused(sql):
    with pytest.raises((StatementRefused, DatabaseAccessDenied)):
        say(sql, keyspaces=ALPHA)


def test_a_refusal_says_why():
    with pytest.raises(StatementRefused) as refused:
        say("SELECT * FROM {OJ t}", Role.READONLY)
    assert refused.value.wire_code() == (1142, "42000")
    assert str(refused.value) == (
        "SELECT command denied to user 'eve'@'host':"
        " it is not understood to its end; this user may send what is"
    )


def test_what_depends_on_literals_is_told_apart():
    assert say("SELECT * FROM t WHERE id = 1", keyspaces=ALPHA)
    assert not say(
        "SELECT 1 FROM information_schema.tables WHERE table_schema = 'alpha'", keyspaces=ALPHA
    )


def test_in_the_schema_of_the_proxy_only_its_own_tables_are_not_looked_for():
    say("SELECT * FROM queues", tables=TABLES, schema="streamfrom")
    for sql in (
        "DELETE FROM other",
        "SET @a = (SELECT s FROM other)",
        "EXPLAIN SELECT * FROM other",
        "SHOW COLUMNS FROM other",
        "LOCK TABLES other WRITE",
    ):
        with pytest.raises(StatementRefused, match="table 'other' is not one of the user's"):
            say(sql, tables=TABLES, schema="streamfrom")


def test_values_that_only_the_server_sees_may_name_any_schema():
    sql = "SELECT 1 FROM information_schema.tables WHERE table_schema = ?"
    say(sql, keyspaces=ALPHA)
    with pytest.raises(StatementRefused, match="a user's own keyspaces"):
        say(sql, keyspaces=ALPHA, are_values_seen=False)


def test_in_information_schema_unqualified_names_are_its_own():
    say(
        "SELECT * FROM tables WHERE table_schema = 'alpha'",
        keyspaces=ALPHA,
        schema="information_schema",
    )
    with pytest.raises(StatementRefused):
        say("SELECT * FROM tables", keyspaces=ALPHA, schema="information_schema")
