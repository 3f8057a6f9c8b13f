"""No user reaches the account under which the proxy is known to its servers."""

import pytest

from streamfrom.proxy.sql.account_protection import check_accounts, may_show_hashes
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.sqlparse_ext.facts import statement


ACCOUNTS = frozenset({"sf"})
SHOWS_NO_HASH = (
    "SELECT * FROM user",
    "SELECT * FROM mysql.db",
    "SELECT 'mysql', user FROM t",
    "SELECT COUNT(*) FROM mysql.user WHERE user = 'root'",
    "SELECT user, host, plugin FROM mysql.user",
    "SHOW STATUS WHERE (SELECT 1 FROM mysql.user)",
    "SHOW COLUMNS FROM mysql.user",
    "SHOW CREATE TABLE mysql.user",
    "EXPLAIN mysql.user",
)


@pytest.mark.parametrize(
    "sql",
    [
        "SET @a = 1, PASSWORD = 'x'",
        "SET @a = 1, `password` = 'x'",
        "SET @a = 1, PASSWORD FOR b = 'x'",
        "SET @a = 1, ROLE NONE",
        "SET @a = 1, DEFAULT ROLE NONE",
        "SET GLOBAL init_connect = 'SET PASSWORD = 1'",
        "SET @@global.init_slave = 'SET PASSWORD = 1'",
        "CALL sys.execute_prepared_stmt('x')",
        "CALL `SYS` . `Execute_Prepared_Stmt`('x')",
        "CALL create_synonym_db('mysql', 'm')",
        "CREATE PROCEDURE p() BEGIN CALL sys.execute_prepared_stmt('x'); END",
        "CREATE USER ''",
        "CREATE USER a, ''@'localhost' IDENTIFIED BY 'x'",
        "CREATE USER IF NOT EXISTS ' '@'localhost'",
        "CREATE OR REPLACE USER ``@localhost",
        "RENAME USER a TO ''@b",
        "GRANT SELECT ON *.* TO ''@localhost",
        "ALTER USER 'sf ' IDENTIFIED BY 'x'",
        "ALTER USER 'SF'@'%' IDENTIFIED BY 'x'",
        "ALTER USER a, `sf` ACCOUNT LOCK",
        "CREATE OR REPLACE USER sf",
        "DROP ROLE sf",
        "REVOKE ALL ON *.* FROM a, sf",
        "GRANT SELECT ON *.* TO sf",
        "GRANT PROXY ON sf TO a",
        "SHOW CREATE USER",
        "SHOW CREATE USER sf",
        "SHOW GRANTS FOR sf",
        "FLUSH PRIVILEGES",
        "BEGIN NOT ATOMIC SHOW GRANTS; END",
        "CREATE PROCEDURE p() SHOW GRANTS FOR sf",
        "DELETE FROM mysql.user",
        "DO (SELECT Priv FROM mysql.global_priv)",
        "INSERT INTO `mysql`.`global_priv` VALUES (1)",
        "CREATE VIEW v AS SELECT * FROM mysql.db",
        "BEGIN NOT ATOMIC SET @a = 1, PASSWORD = 'x'; END",
        "IF 1 THEN GRANT ALL ON *.* TO b; END IF",
        "CREATE PROCEDURE p() BEGIN PREPARE s FROM @q; EXECUTE s; END",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SET ROLE a",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW DELETE FROM mysql.user",
        "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW SET PASSWORD = 'x'",
    ],
)
def test_what_would_reach_it_is_refused(sql):
    with pytest.raises(Unsupported, match="accounts live in the proxy's configuration"):
        check_accounts(statement(sql), ACCOUNTS, "shop")


@pytest.mark.parametrize(
    "sql",
    [
        "SET @password = 'x'",
        "SET @@session.old_passwords = 0",
        "GRANT SELECT ON sf.* TO a",
        "ALTER USER a IDENTIFIED BY 'x'",
        *SHOWS_NO_HASH,
        "DELETE FROM user",
        "SHOW GRANTS FOR CURRENT_USER()",
        "SHOW CREATE USER a",
        "CREATE USER a IDENTIFIED BY '' COMMENT ''",
        "DROP USER ''@localhost",
        "CALL execute('x')",
        "CALL sys.ps_setup_show_disabled(TRUE, TRUE)",
        "CREATE PROCEDURE p() BEGIN INSERT INTO user (role, password) VALUES (1, 2); END",
        "CREATE PROCEDURE p() UPDATE user SET password = 'x' WHERE role = 1",
        "CREATE PROCEDURE p() BEGIN XA START 'x'; XA END 'x'; XA PREPARE 'x'; END",
        "CREATE TABLE t (password INT, role INT)",
    ],
)
def test_what_only_looks_like_it_is_not(sql):
    check_accounts(statement(sql), ACCOUNTS, "shop")


def test_unqualified_names_are_of_the_target():
    with pytest.raises(Unsupported):
        check_accounts(statement("DELETE FROM user"), ACCOUNTS, "mysql")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT authentication_string FROM mysql.user",
        "SELECT 1 FROM t WHERE EXISTS (SELECT * FROM `MYSQL` . `Global_Priv`)",
        "SELECT u.* FROM mysql.user AS u",
        "SELECT COUNT(*), u.* FROM mysql.user AS u",
        "SELECT `Authentication_String` FROM mysql.user",
        "SELECT COUNT(*) FROM mysql.user WHERE `password` LIKE '*1%'",
        "SELECT h FROM (TABLE mysql.user) AS t (h)",
        "WITH t (h) AS (SELECT * FROM mysql.user) SELECT h FROM t",
        "TABLE mysql.password_history",
        "SET @a = (SELECT Priv FROM mysql.global_priv LIMIT 1)",
        "SHOW STATUS WHERE (SELECT priv FROM mysql.global_priv)",
        "CALL p((SELECT Priv FROM mysql.global_priv LIMIT 1))",
    ],
)
def test_what_shows_hashes_is_known(sql):
    assert may_show_hashes(statement(sql).shape, "shop")


@pytest.mark.parametrize("sql", SHOWS_NO_HASH)
def test_what_shows_none_is_known(sql):
    assert not may_show_hashes(statement(sql).shape, "shop")
