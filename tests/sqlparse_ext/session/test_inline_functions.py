import pytest

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.session.inline_functions import inline


VALUES = {
    "FOUND_ROWS": b"5",
    "CONNECTION_ID": b"17",
    "CURRENT_USER": b"'ann@%'",
    "@@WARNING_COUNT": b"2",
    "@@SOCKET": b"'/p.sock'",
}


def inlined(sql: str) -> str:
    return inline(StatementCache().get(sql.encode()), VALUES).decode()


@pytest.mark.parametrize(
    ("sql", "result"),
    [
        ("SELECT FOUND_ROWS()", "SELECT IF(TRUE, 5, FOUND_ROWS()) AS `FOUND_ROWS()`"),
        ("SELECT FOUND_ROWS() FROM t", "SELECT 5 AS `FOUND_ROWS()` FROM t"),
        ("select found_rows ( ) from t", "select 5 AS `found_rows ( )` from t"),
        ("SELECT `found_rows`() FROM t", "SELECT 5 AS ```found_rows``()` FROM t"),
        ("SELECT FOUND_ROWS() AS n FROM t", "SELECT 5 AS n FROM t"),
        ("SELECT FOUND_ROWS() n, 1 FROM t", "SELECT 5 n, 1 FROM t"),
        ("SELECT FOUND_ROWS() 'n' FROM t", "SELECT 5 'n' FROM t"),
        ("SELECT CURRENT_USER 'n' FROM t", "SELECT ('ann@%') 'n' FROM t"),
        ("SELECT FOUND_ROWS() > 0 n FROM t", "SELECT 5 > 0 n FROM t"),
        (
            "SELECT (SELECT FOUND_ROWS()) FROM t",
            "SELECT (SELECT 5 AS `FOUND_ROWS()`) AS `(SELECT FOUND_ROWS())` FROM t",
        ),
        (
            "SELECT * FROM t, (SELECT FOUND_ROWS()) d",
            "SELECT * FROM t, (SELECT 5 AS `FOUND_ROWS()`) d",
        ),
        (
            "SELECT 'x', FOUND_ROWS() + 1 FROM t WHERE a = CONNECTION_ID()",
            "SELECT 'x', 5 + 1 AS `FOUND_ROWS() + 1` FROM t WHERE a = 17",
        ),
        (
            "SELECT IF(FOUND_ROWS() > 3, 'yes', 'no') FROM t",
            "SELECT IF(5 > 3, 'yes', 'no') AS `IF(FOUND_ROWS() > 3, 'yes', 'no')` FROM t",
        ),
        (
            "SELECT CURRENT_USER",
            "SELECT IF(TRUE, _utf8mb3'ann@%', CURRENT_USER()) AS `CURRENT_USER`",
        ),
        ("SELECT CURRENT_USER u FROM t", "SELECT 'ann@%' u FROM t"),
        (
            "SELECT @@session.warning_count",
            "SELECT IF(TRUE, CAST(2 AS UNSIGNED), @@warning_count) AS `@@session.warning_count`",
        ),
        ("SELECT @@global.warning_count", "SELECT @@global.warning_count"),
        ("SELECT @@socket FROM t", "SELECT '/p.sock' AS `@@socket` FROM t"),
        ("SELECT @@`socket` FROM t", "SELECT '/p.sock' AS `@@``socket``` FROM t"),
        ("SELECT @@GLOBAL . socket FROM t", "SELECT '/p.sock' AS `@@GLOBAL . socket` FROM t"),
        ("SELECT @@local.socket", "SELECT @@local.socket"),
        (
            "SELECT DISTINCT CONNECTION_ID() FROM t",
            "SELECT DISTINCT 17 AS `CONNECTION_ID()` FROM t",
        ),
        ("INSERT INTO t VALUES (CONNECTION_ID())", "INSERT INTO t VALUES (17)"),
        ("UPDATE t SET a = CONNECTION_ID() WHERE b = 'x'", "UPDATE t SET a = 17 WHERE b = 'x'"),
    ],
)
def test_a_call_becomes_its_value_and_its_column_keeps_the_name(sql, result):
    assert inlined(sql) == result


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'FOUND_ROWS()'",
        "SELECT /* FOUND_ROWS() */ 1",
        "SELECT found_rows FROM t",
        "SELECT t.current_user FROM t",
        "SELECT `current_user` FROM t",
        "SELECT found_rows(1)",
        "INSERT INTO `connection_id`() VALUES ()",
        "REPLACE connection_id() VALUES ()",
        "SELECT @connection_id",
    ],
)
def test_what_is_no_such_call_stays(sql):
    assert inlined(sql) == sql


@pytest.mark.parametrize(
    ("sql", "result"),
    [
        (
            "SELECT IS_USED_LOCK('a') = CONNECTION_ID() FROM t",
            "SELECT CAST(CASE IS_USED_LOCK('a') WHEN 30 THEN 17 WHEN 31 THEN 18"
            " ELSE IS_USED_LOCK('a') END AS UNSIGNED) = 17"
            " AS `IS_USED_LOCK('a') = CONNECTION_ID()` FROM t",
        ),
        (
            "SELECT is_used_lock(CONCAT('a', (1))) x",
            "SELECT CAST(CASE is_used_lock(CONCAT('a', (1))) WHEN 30 THEN 17 WHEN 31 THEN 18"
            " ELSE is_used_lock(CONCAT('a', (1))) END AS UNSIGNED) x",
        ),
        ("SELECT 'IS_USED_LOCK(1)'", "SELECT 'IS_USED_LOCK(1)'"),
        ("SELECT IS_USED_LOCK", "SELECT IS_USED_LOCK"),
    ],
)
def test_who_holds_a_lock_is_told_in_other_numbers(sql, result):
    statement = StatementCache().get(sql.encode())
    assert inline(statement, VALUES, {30: 17, 31: 18}).decode() == result
