"""SELECTs over several shards: what the random test once found, and what it does not try."""

import contextlib
import threading
import time

import pymysql
import pytest
from pymysql.constants import CLIENT

from tests.fixtures.streams import rows, run
from tests.integration.scatter import ComparedCluster, ask, check, differences


pytestmark = pytest.mark.db


def numbers(compared: ComparedCluster, count: int = 50) -> None:
    compared.create("id BIGINT PRIMARY KEY, a INT, s VARCHAR(20)")
    compared.insert(
        ["id", "a", "s"],
        [[str(n), str(n % 7), f"'{'aAbB'[n % 4]}{n % 5}'"] for n in range(1, count + 1)],
    )


def test_what_readers_send(compared: ComparedCluster) -> None:
    numbers(compared)
    check(
        compared,
        "SELECT COUNT(*) FROM t",
        "SELECT MIN(id), MAX(id) FROM t",
        "SELECT * FROM t ORDER BY id LIMIT 5, 3",
        "SELECT * FROM t ORDER BY id LIMIT 5, 18446744073709551615",
        "SELECT `a`,COUNT(*),MAX(`id`),AVG(`id`),COUNT(DISTINCT `s`) FROM `t`  WHERE (`id` > 3)"
        " GROUP BY `a`  ORDER BY `a` ASC LIMIT 2",
        "SELECT x.* FROM t x ORDER BY x.s DESC, x.id",
        "SELECT COUNT(*) FROM t WHERE 1=0 GROUP BY a",
    )


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_the_limit_of_the_session_is_one_of_the_answer(
    compared: ComparedCluster, limit: int
) -> None:
    numbers(compared)
    connections = [*compared.spread.values(), compared.direct]
    for connection in connections:
        run(connection, f"SET sql_select_limit = {limit}")
    for sql in (
        "SELECT id FROM t ORDER BY id",
        "SELECT a, COUNT(*) + 1 FROM t GROUP BY a ORDER BY a",
        "SELECT a, COUNT(*) + 1 FROM t GROUP BY a ORDER BY a LIMIT 5",
        "SELECT a, STD(id) > 1 FROM t GROUP BY a ORDER BY a",
        "SELECT SUM(a) FROM (SELECT a, COUNT(*) FROM t GROUP BY a) d LIMIT 5",
        "SELECT a FROM t GROUP BY a UNION SELECT id FROM t ORDER BY 1",
        "SELECT @@sql_select_limit",
        "SELECT 1 FROM t",  # in any order, so equal rows show how many there are
    ):
        for prepared in (False, True):
            *found, own = (ask(each, sql, prepared=prepared).rows for each in connections)
            assert found == [own] * len(found), sql
    if limit:
        sql = "SELECT COUNT(*) FROM (SELECT DISTINCT a FROM t) d"
        assert ask(connections[0], sql).rows == [(b"7",)]
    run(compared.spread[3], "INSERT INTO t (id, a) SELECT MAX(id) + 1000, a FROM t GROUP BY a")
    assert ask(compared.spread[3], "SELECT COUNT(*) FROM t LIMIT 1").rows == [(b"57",)]


def test_groups_of_the_vindex_column_are_whole_so_any_aggregate_is_answered(
    compared: ComparedCluster,
) -> None:
    numbers(compared)
    check(
        compared,
        "SELECT id, GROUP_CONCAT(s), SUM(a) + 1 FROM t GROUP BY id ORDER BY SUM(a) + 1, id LIMIT 9",
    )


def test_expressions_of_aggregates_are_computed_as_by_one_server(
    compared: ComparedCluster,
) -> None:
    compared.create(
        "id BIGINT PRIMARY KEY, g INT, a INT, n DECIMAL(10,3), s VARCHAR(20), d TIMESTAMP NULL"
    )
    compared.insert(
        ["id", "g", "a", "n", "s", "d"],
        [
            [str(n), str(n % 5), str(n % 7) if n % 6 else "NULL", f"{n}.125", f"'s{n % 9}'",
             f"'2024-01-{1 + n % 28:02} 10:00:00'"]
            for n in range(1, 60)
        ],
    )  # fmt: skip
    items = (
        "COALESCE(SUM(a), 0), SUM(a) / COUNT(*), SUM(n) * 1.2, ROUND(AVG(n), 2), AVG(a) * 100,"
        " COUNT(*) + 1, MAX(a) - MIN(a), 100 * SUM(a = 1) / COUNT(*), IF(COUNT(*) > 3, 'y', 'n'),"
        " CAST(SUM(a) AS SIGNED), DATE(MAX(d)), CONCAT(COUNT(*), ' rows'), NULLIF(COUNT(*), 12),"
        " UPPER(MAX(s)), CASE WHEN SUM(a) > 20 THEN 'big' ELSE 'small' END, COUNT(DISTINCT a) / 2"
    )
    check(
        compared,
        f"SELECT {items} FROM t",
        f"SELECT {items} FROM t WHERE id > 1000",
        f"SELECT g, {items}, g + COUNT(*) FROM t GROUP BY g ORDER BY g LIMIT 3",
        "SELECT g, SUM(a) / COUNT(*) r FROM t GROUP BY g HAVING r > 1.5 ORDER BY r DESC, g LIMIT 3",
        "SELECT g FROM t GROUP BY g HAVING COUNT(*) > 11 OR SUM(a) < 30 ORDER BY g",
        "SELECT g FROM t GROUP BY g HAVING MAX(s) > 's7' ORDER BY SUM(a) + COUNT(*) DESC, g",
        "SELECT g, SUM(a) total, COUNT(*) c FROM t GROUP BY g HAVING total * 2 > c ORDER BY total - c, g",
        "SELECT COUNT(*) FROM (SELECT g, SUM(a) / COUNT(*) FROM t GROUP BY g) d",
    )
    for connection in compared.spread.values():
        assert ask(connection, f"SELECT {items} FROM t", prepared=True).rows == (
            ask(compared.direct, f"SELECT {items} FROM t", prepared=True).rows
        )
    connection = compared.proxy.connect(database="by3")
    run(connection, "INSERT INTO t (id, a) VALUES (100, 1), (101, 1)")
    assert ask(connection, "SELECT COUNT(*) + 1 FROM t").rows == [(b"62",)]
    sql = "SELECT COUNT(*) + 9223372036854775807 FROM t"
    codes = [ask(each, sql).error for each in (connection, compared.direct)]
    assert [error and error[0] for error in codes] == [1690, 1690]
    connection.rollback()
    assert ask(connection, "SELECT COUNT(*) / 0 FROM t").rows == [(None,)]
    assert [warning[1] for warning in rows(connection, "SHOW WARNINGS")] == [1365]
    # Once two rows for two shards.
    for sql in ("SELECT COUNT(*) + (SELECT 1) FROM t", "SELECT (SELECT 1) + MAX(a) FROM t"):
        answer = ask(compared.spread[2], sql)
        assert answer.error == (1235, "unsupported: an aggregate over several shards")
    # MySQL rounds what each function makes of an average, MariaDB does not.
    check(
        compared,
        "SELECT AVG(a) * 100, ROUND(AVG(a), 1) / 3, CONCAT(AVG(a), ' EUR') FROM t WHERE id < 9",
    )
    connection.rollback()
    # More groups than are computed at once.
    compared.create("id BIGINT PRIMARY KEY, a INT")
    compared.insert(["id", "a"], [[str(n), str(n // 2)] for n in range(1, 1300)])
    check(compared, "SELECT a, a * COUNT(*) FROM t GROUP BY a ORDER BY a DESC")


def test_an_alias_that_is_also_a_column_is_grouped_by_as_the_column(
    compared: ComparedCluster,
) -> None:
    numbers(compared)
    check(compared, "SELECT a DIV 3 AS a, COUNT(*) FROM t GROUP BY a ORDER BY SUM(id)")
    answer = ask(compared.spread[2], "SELECT id % 2 AS a, COUNT(*) FROM t GROUP BY a")
    if compared.server.family == "mysql":
        # The statement itself is wrong there: it groups by the column.
        assert answer.error is not None
        assert answer.error[0] == 1055
        return
    # Of any row of a group.
    assert answer.error is None


def test_a_char_column_without_padding_is_sorted_as_the_server_does(
    compared: ComparedCluster,
) -> None:
    is_mysql = compared.server.family == "mysql"
    collation = "utf8mb4_0900_ai_ci" if is_mysql else "utf8mb4_unicode_nopad_ci"
    compared.create(
        f"id BIGINT PRIMARY KEY, s CHAR(10) CHARACTER SET utf8mb4 COLLATE {collation}"
    )
    words = ("a", "a\\t", "a b", "", "\\t", "b")
    compared.insert(["id", "s"], [[str(n), f"'{word}'"] for n, word in enumerate(words, 1)])
    check(
        compared,
        "SELECT s FROM t ORDER BY s, id",
        "SELECT s FROM t ORDER BY s DESC, id",
        "SELECT s, COUNT(*) FROM t GROUP BY s ORDER BY s",
    )


def test_an_instant_sorts_by_itself_and_not_by_its_text_when_clocks_are_set_back(
    compared: ComparedCluster,
) -> None:
    compared.create("id BIGINT PRIMARY KEY, d TIMESTAMP NULL")
    for connection in (compared.direct, *compared.spread.values()):
        run(connection, "SET time_zone = '+00:00'")
    compared.insert(
        ["id", "d"], [[str(n), f"'2024-10-27 0{n % 3}:30:00'"] for n in range(1, 9)]
    )
    check(compared, "SELECT d, id FROM t ORDER BY d, id", "SELECT DISTINCT d FROM t ORDER BY d")


def test_an_order_by_the_smallest_of_an_enum_is_refused(compared: ComparedCluster) -> None:
    compared.create("id BIGINT PRIMARY KEY, e ENUM('z', 'a')")
    for sql in (
        "SELECT id, MAX(e) m FROM t GROUP BY id ORDER BY m",
        "SELECT id % 2, MAX(e) m FROM t GROUP BY 1 ORDER BY m",
    ):
        answer = ask(compared.spread[3], sql)
        assert answer.error is not None
        assert "MIN or MAX of an ENUM" in answer.error[1]


def test_a_servers_own_error_comes_through(compared: ComparedCluster) -> None:
    numbers(compared)
    for sql in ("SELECT nope FROM t ORDER BY 1", "SELECT a FROM t ORDER BY nope"):
        mine, theirs = ask(compared.spread[2], sql), ask(compared.direct, sql)
        assert mine.error == theirs.error
    check(compared, "SELECT COUNT(*) FROM t")


def test_it_takes_part_in_the_sessions_transaction(compared: ComparedCluster) -> None:
    numbers(compared)
    connection = compared.proxy.connect(database="by3")
    run(connection, "INSERT INTO t (id, a) VALUES (100, 1), (101, 1), (102, 1), (103, 1)")
    assert ask(connection, "SELECT COUNT(*) FROM t").rows == [(b"54",)]
    assert ask(connection, "SELECT id FROM t ORDER BY id DESC LIMIT 1").rows == [(b"103",)]
    assert ask(compared.spread[3], "SELECT COUNT(*) FROM t").rows == [(b"50",)]
    connection.rollback()
    assert ask(connection, "SELECT COUNT(*) FROM t").rows == [(b"50",)]


def test_answers_follow_one_another_in_one_command(compared: ComparedCluster) -> None:
    numbers(compared)
    connection = compared.proxy.connect(database="by2", client_flag=CLIENT.MULTI_STATEMENTS)
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM t; SELECT id FROM t ORDER BY id LIMIT 2; SELECT 1")
        assert cursor.fetchall() == ((50,),)
        assert cursor.nextset()
        assert cursor.fetchall() == ((1,), (2,))
        assert cursor.nextset()
        assert cursor.fetchall() == ((1,),)


def test_a_slow_reader_of_a_large_order_costs_bounded_memory(compared: ComparedCluster) -> None:
    compared.create("id BIGINT PRIMARY KEY, body VARCHAR(4000)")
    for start in range(1, 20_001, 2000):
        compared.insert(
            ["id", "body"], [[str(n), "REPEAT('x', 3000)"] for n in range(start, start + 2000)]
        )
    before = resident_bytes(compared.proxy.pid)
    connection = compared.proxy.connect(
        database="by8", cursorclass=pymysql.cursors.SSCursor, autocommit=True
    )
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, body FROM t ORDER BY id")
        peak = 0
        for expected in range(1, 20_001):
            (found, _) = cursor.fetchone()
            assert found == expected
            if expected % 2000 == 0:
                time.sleep(0.05)
                peak = max(peak, resident_bytes(compared.proxy.pid))
    # 60 MB of rows; 8 shards may wait with 256 KB each, and sockets hold some.
    assert peak - before < 25 << 20


def test_kill_query_ends_it_and_the_session_goes_on(compared: ComparedCluster) -> None:
    numbers(compared)
    connection = compared.proxy.connect(database="by3", autocommit=True)
    number = connection.thread_id()
    is_over = threading.Event()

    def kill() -> None:
        with contextlib.closing(compared.proxy.connect(database="by3")) as other:
            while not is_over.wait(0.2):
                run(other, f"KILL QUERY {number}")

    killer = threading.Thread(target=kill)
    killer.start()
    answer = ask(connection, "SELECT a FROM t WHERE SLEEP(60) = 0 ORDER BY a")
    is_over.set()
    killer.join()
    assert answer.error is not None
    assert ask(connection, "SELECT COUNT(*) FROM t").rows == [(b"50",)]


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_joined_writes_do_on_the_shards_what_they_do_on_one_server(
    compared: ComparedCluster,
) -> None:
    compared.create("id BIGINT PRIMARY KEY, a INT, s VARCHAR(20)")
    compared.create("id BIGINT PRIMARY KEY, a INT, s VARCHAR(20)", "u")
    compared.create("id BIGINT PRIMARY KEY, a INT", "r")
    rows = [[str(n), str(n % 5), f"'s{n}'"] for n in range(1, 31)]
    compared.insert(["id", "a", "s"], rows)
    compared.insert(["id", "a", "s"], rows[::2], "u")
    compared.everywhere("INSERT INTO r VALUES (1, 1), (2, 4)")
    for sql in (
        "UPDATE t JOIN u ON t.id = u.id SET t.s = CONCAT(u.s, '!') WHERE t.id = 7",
        "UPDATE t SET a = (SELECT MAX(a) FROM u WHERE u.id = 9) WHERE id = 9",
        "DELETE t FROM t JOIN u ON t.id = u.id WHERE u.id = 11",
        "DELETE FROM u WHERE id = 13 AND EXISTS (SELECT 1 FROM r WHERE r.a = 4)",
        "INSERT INTO u (id, a, s) SELECT t.id, t.a, t.s FROM t LEFT JOIN u ON u.id = t.id"
        " WHERE u.id IS NULL",
        "INSERT IGNORE INTO t (s, id, a) SELECT u.s, u.id, 99 FROM u",
        "REPLACE INTO t (id, a) SELECT 5, r.a FROM r WHERE r.id = 2",
    ):
        counts = set()
        for connection in (compared.direct, *compared.spread.values()):
            with connection.cursor() as cursor:
                counts.add(cursor.execute(sql))
        assert len(counts) == 1, (sql, counts)
    check(compared, "SELECT * FROM t ORDER BY id", "SELECT * FROM u ORDER BY id")


def test_joins_are_merged_like_one_table(compared: ComparedCluster) -> None:
    numbers(compared)
    compared.create("id BIGINT PRIMARY KEY, a INT, s VARCHAR(20)", "u")
    compared.create("id BIGINT PRIMARY KEY, name VARCHAR(20)", "r")
    compared.insert(["id", "a"], [[str(n), str(n % 3)] for n in range(1, 51, 3)], "u")
    compared.everywhere("INSERT INTO r VALUES (1, 'one'), (2, 'Two'), (3, 'three')")
    check(
        compared,
        "SELECT * FROM t JOIN u ON t.id = u.id ORDER BY t.s, t.id LIMIT 4",
        "SELECT t.id, r.name FROM t JOIN r ON r.id = t.a ORDER BY r.name DESC, t.id LIMIT 7",
        "SELECT r.name, COUNT(*), AVG(t.id) FROM t LEFT JOIN r ON r.id = t.a GROUP BY r.name"
        " ORDER BY r.name",
        "SELECT COUNT(DISTINCT u.a) FROM t LEFT JOIN u USING (id) WHERE t.id > 3",
        "SELECT t.id, (SELECT COUNT(*) FROM u WHERE u.id = t.id) n FROM t ORDER BY n DESC, t.id",
        "SELECT id FROM t WHERE EXISTS(SELECT 1 AS x FROM u U0 WHERE U0.id = (t.id) LIMIT 1) ORDER BY id",
        "SELECT id, (SELECT U0.a FROM u U0 WHERE U0.id = (t.id) ORDER BY U0.a LIMIT 1) n FROM t"
        " ORDER BY n, id DESC LIMIT 20",
        # The rows that a RIGHT JOIN fills with NULLs are one group, and of all shards.
        "SELECT u.id, MIN(t.a) FROM u RIGHT JOIN t ON t.id = u.id AND t.id < 9 GROUP BY u.id"
        " ORDER BY u.id",
    )


def test_unions_are_answered_with_one_servers_columns_and_rows(
    compared: ComparedCluster,
) -> None:
    numbers(compared)
    compared.create("id BIGINT PRIMARY KEY, b DECIMAL(6,2), s VARCHAR(40)", "u")
    compared.insert(
        ["id", "b", "s"], [[str(n), f"{n % 4}.5", f"'B{n % 5}'"] for n in range(40, 70)], "u"
    )
    compared.create("id BIGINT PRIMARY KEY, s VARCHAR(20)", "r")
    compared.everywhere("INSERT INTO r VALUES (1, 'b1'), (2, 'other')")
    for sql in (
        "SELECT id, s FROM t UNION ALL SELECT id, s FROM u ORDER BY s DESC, id LIMIT 3, 9",
        "SELECT a, id FROM t UNION ALL SELECT b, id FROM u ORDER BY 1, id LIMIT 20",
        "SELECT id AS n, 'left' AS side FROM t UNION ALL (SELECT id, 'rightmost' FROM u)"
        " ORDER BY side, n",
        "SELECT id FROM t EXCEPT SELECT id FROM u ORDER BY id",
        "SELECT id FROM t INTERSECT SELECT id FROM u ORDER BY 1 DESC LIMIT 4",
        "SELECT a FROM t UNION SELECT b FROM u UNION SELECT 77 ORDER BY a",
        "SELECT a, a % 2 AS p FROM t UNION SELECT id, 5 FROM r ORDER BY p DESC, 1 LIMIT 5",
    ):
        theirs = ask(compared.direct, sql)
        for shards, connection in compared.spread.items():
            mine = ask(connection, sql)
            assert not differences(mine, theirs), (shards, sql)
            assert mine.rows == theirs.rows, (shards, sql)
    check(compared, "SELECT id, s FROM t UNION ALL SELECT id, s FROM u", in_order=False)
    answer = ask(compared.spread[2], "SELECT a, a FROM t UNION SELECT id, s FROM r")
    assert answer.error is not None
    assert "two columns of one name" in answer.error[1]


def test_distinct_rows_with_a_subquery_among_them_are_refused(
    compared: ComparedCluster,
) -> None:
    numbers(compared)
    compared.create("id BIGINT PRIMARY KEY, k INT", "u")
    for items in (
        "a, (SELECT MAX(k) FROM u WHERE u.id = t.id)",
        "(SELECT MIN(k) FROM u WHERE u.id = t.id), (SELECT MAX(k) FROM u WHERE u.id = t.id)",
    ):
        answer = ask(compared.spread[2], f"SELECT DISTINCT {items} FROM t")
        assert answer.error == (1235, "unsupported: grouping by a subquery over several shards")


def test_the_rows_of_a_derived_table_are_counted_as_paginators_do(
    compared: ComparedCluster,
) -> None:
    numbers(compared)
    compared.create("id BIGINT PRIMARY KEY, a INT, s VARCHAR(20)", "u")
    compared.insert(
        ["id", "a", "s"], [[str(n), str(n % 3), "'B1'"] for n in range(40, 60)], "u"
    )
    for inner in (
        "SELECT id, s FROM t WHERE a > 1 ORDER BY s",
        "SELECT DISTINCT s FROM t",
        "SELECT DISTINCT id, s FROM t",
        "SELECT s FROM t WHERE a = 99 GROUP BY s",
        "SELECT s, COUNT(*) AS n FROM t GROUP BY s HAVING COUNT(*) > 4 ORDER BY COUNT(*) DESC, s",
        "SELECT id, COUNT(*) AS n FROM t GROUP BY id",
        "SELECT id FROM t ORDER BY s DESC LIMIT 45, 20",
        "SELECT a, s FROM t GROUP BY a, s LIMIT 3, 12",
        "SELECT a FROM t LIMIT 0",
        "SELECT COUNT(*), MAX(a) FROM t",
        "SELECT COUNT(DISTINCT s) FROM t HAVING COUNT(DISTINCT s) > 100",
        "SELECT t.s FROM t LEFT JOIN u ON t.id = u.id GROUP BY t.s",
        "SELECT a FROM t UNION SELECT a FROM u",
        "SELECT a, id FROM t UNION ALL SELECT a, id FROM u",
        "SELECT id FROM t EXCEPT SELECT id FROM u ORDER BY 1 LIMIT 30",
        "SELECT x.s FROM (SELECT s, a FROM t) x WHERE x.a > 2 GROUP BY x.s",
    ):
        for outer in ("COUNT(*)", "count(*) AS count_1"):
            sql = f"SELECT {outer} FROM ({inner}) AS anon_1"
            for prepared in (False, True):
                theirs = ask(compared.direct, sql, prepared=prepared)
                assert theirs.error is None, theirs.error
                for shards, connection in compared.spread.items():
                    mine = ask(connection, sql, prepared=prepared)
                    assert not differences(mine, theirs), (shards, sql)


def test_a_derived_table_whose_rows_are_each_on_one_shard_is_read_as_a_table_is(
    compared: ComparedCluster,
) -> None:
    numbers(compared)
    check(
        compared,
        "SELECT d.b, COUNT(*), SUM(d.a) FROM (SELECT a, id % 4 AS b FROM t WHERE id > 9) d"
        " GROUP BY d.b ORDER BY 2 DESC, d.b LIMIT 3",
        "SELECT * FROM (SELECT id, a + 1 AS b FROM t) AS d WHERE b > 3 ORDER BY b DESC, id LIMIT 5, 7",
        "SELECT n, COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM t GROUP BY id) d GROUP BY n ORDER BY n",
        "SELECT DISTINCT UPPER(d.s) AS u FROM (SELECT DISTINCT id, s FROM t) d ORDER BY u",
        "SELECT MAX(y.b) FROM (SELECT x.b FROM (SELECT a * 2 AS b FROM t) x WHERE x.b > 1) y",
        "SELECT d.* FROM (SELECT s, id FROM t ORDER BY a) d ORDER BY d.s, d.id",
    )


def test_a_derived_table_that_needs_all_shards_for_a_row_is_refused(
    compared: ComparedCluster,
) -> None:
    numbers(compared)
    sql = "SELECT x, COUNT(*) FROM (SELECT RAND() x FROM t) d GROUP BY x"
    answer = ask(compared.spread[2], sql)
    assert answer.error is not None
    assert answer.error[0] == 1235, sql


def test_a_position_in_parentheses_is_a_position(compared: ComparedCluster) -> None:
    numbers(compared)
    check(
        compared,
        "SELECT a, id FROM t ORDER BY (1) DESC, ((id)) LIMIT 9",
        "SELECT a + 1, COUNT(*) FROM t GROUP BY (1) ORDER BY (2) DESC, (1)",
        "SELECT DISTINCT(a) FROM t ORDER BY a DESC",
        "SELECT (a) AS x, (COUNT(*)) FROM t GROUP BY a ORDER BY ((x))",
        "(SELECT a, id FROM t WHERE id < 30) UNION (SELECT id, a FROM t) ORDER BY (2) ASC, (1) LIMIT 21",
    )
    for sql in (
        "SELECT a FROM t ORDER BY -1",
        "SELECT a FROM t ORDER BY 0",
        "SELECT a FROM t ORDER BY 2",
    ):
        theirs = ask(compared.direct, sql)
        mine = ask(compared.spread[3], sql)
        assert not differences(mine, theirs), sql


def test_an_average_that_rounds_to_what_having_compares_with_is_computed_from_the_rows(
    compared: ComparedCluster,
) -> None:
    compared.create("id BIGINT PRIMARY KEY, a INT, b INT")
    compared.insert(
        ["id", "a", "b"], [[str(n), str(n % 3), str(1 + (n % 9 < 3))] for n in range(1, 28)]
    )
    check(
        compared,
        "SELECT a, AVG(b) FROM t GROUP BY a HAVING AVG(b) > 1.3 ORDER BY a",
        "SELECT a, AVG(b) AS m FROM t GROUP BY a HAVING m <= 1.3334 ORDER BY m DESC, a",
    )
    check(
        compared,
        *(
            f"SELECT a, AVG(b) FROM t GROUP BY a HAVING AVG(b) {condition} ORDER BY a"
            for condition in ("> 1.3333", "= 1.3333", ">= 1.33332")
        ),
    )
