import pytest

from streamfrom.proxy.config.file import Role, Secret, User
from streamfrom.proxy.errors import CommandDenied, DatabaseAccessDenied
from streamfrom.proxy.sql.privileges import Privileges
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.sqlparse_ext.facts import statement


def guard(role=Role.READWRITE, keyspaces=None):
    return Privileges(User("eve", Secret(""), None, role, keyspaces), "10.0.0.1")


READER = guard(Role.READONLY)


def test_a_user_sees_the_keyspaces_it_was_given():
    narrow = guard(keyspaces=frozenset({"shop"}))
    narrow.check_target("shop:-80")
    with pytest.raises(
        DatabaseAccessDenied, match=r"'eve'@'10\.0\.0\.1' to database 'other:-80'"
    ) as denied:
        narrow.check_target("other:-80")
    assert denied.value.wire_code() == (1044, "42000")
    guard().check_target("other")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t",
        "(SELECT 1)",
        "SHOW TABLES",
        "EXPLAIN SELECT 1",
        "EXPLAIN DELETE FROM t",
        "DESCRIBE t",
        "SET autocommit = 0",
        "SET NAMES utf8mb4",
        "SET @x = 1",
        "USE shop",
        "BEGIN",
        "START TRANSACTION READ ONLY",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT a",
        "KILL 5",
        "/* nothing */",
    ],
)
def test_a_reader_may_read(sql):
    READER.check_statement(statement(sql))


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1)",
        "REPLACE INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "DELETE FROM t",
        "WITH x AS (SELECT 1) DELETE FROM t",
        "STREAM * FROM t",
        "CREATE TABLE t (id INT)",
        "TRUNCATE t",
        "CALL p()",
        "DO GET_LOCK('a', 1)",
        "LOCK TABLES t WRITE",
        "LOAD DATA INFILE 'x' INTO TABLE t",
        "PREPARE p FROM 'DELETE FROM t'",
        "XA START 'x'",
        "HANDLER t OPEN",
        "SELECT * FROM t FOR UPDATE",
        "SELECT * FROM t INTO OUTFILE 'x'",
        "SET GLOBAL read_only = 0",
        "SET @@persist.read_only = 0",
        "ANALYZE DELETE FROM t",
        "ANALYZE FORMAT=JSON UPDATE t SET a = 1",
        "SET STATEMENT max_statement_time=1 FOR DELETE FROM t",
        "GRANT ALL ON *.* TO eve",
        "gibberish",
    ],
)
def test_a_reader_may_do_nothing_else(sql):
    with pytest.raises(CommandDenied, match=r"command denied to user 'eve'@'10\.0\.0\.1'"):
        READER.check_statement(statement(sql))
    guard().check_statement(statement(sql))


@pytest.mark.parametrize(
    "sql",
    [
        "SET PASSWORD = 'x'",
        "SET ROLE admin",
        "SET DEFAULT ROLE a TO b",
        "ALTER USER USER() IDENTIFIED BY 'x'",
        "ALTER USER IF EXISTS CURRENT_USER IDENTIFIED BY 'x'",
        "DROP USER a, CURRENT_USER()",
        "RENAME USER CURRENT_USER() TO b",
        "GRANT SELECT ON *.* TO CURRENT_USER()",
        "REVOKE ALL ON *.* FROM CURRENT_USER",
    ],
)
@pytest.mark.parametrize("role", list(Role))
def test_nobody_changes_the_account_on_the_servers(sql, role):
    with pytest.raises(Unsupported, match="accounts live in the proxy's configuration"):
        guard(role).check_statement(statement(sql))


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE USER a",
        "ALTER USER a IDENTIFIED BY 'x'",
        "DROP USER a",
        "GRANT SELECT ON *.* TO a",
        "SHOW GRANTS FOR CURRENT_USER()",
        "CREATE DEFINER=CURRENT_USER VIEW v AS SELECT 1",
        "CREATE TABLE user (who VARCHAR(80) DEFAULT (CURRENT_USER()))",
    ],
)
def test_accounts_that_are_named_are_the_servers_business(sql):
    guard().check_statement(statement(sql))
