"""Aggregates and parts over several shards, one kind after another, with what the random test found."""

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.streams import rows, run
from tests.integration.scatter import ComparedCluster, ask, check, differences


pytestmark = pytest.mark.db


def test_distinct_and_bitwise_aggregates_and_windows_are_those_of_one_server(
    compared: ComparedCluster,
) -> None:
    compared.create("id BIGINT PRIMARY KEY, g INT, a INT, s VARCHAR(20), n DECIMAL(10,3)")
    compared.insert(
        ["id", "g", "a", "s", "n"],
        [
            [str(i), str(i % 4), str(i % 7) if i % 5 else "NULL",
             f"'{('x', 'X', 'y ', 'y', '1', '01')[i * i % 6]}'", f"{i % 3}.5"]
            for i in range(1, 60)
        ],
    )  # fmt: skip
    check(
        compared,
        "SELECT COUNT(DISTINCT a), SUM(DISTINCT n), COUNT(*), COUNT(DISTINCT s, a) FROM t",
        "SELECT COUNT(DISTINCT a), COUNT(DISTINCT s) FROM t WHERE id > 90",
        "SELECT g, COUNT(DISTINCT s), AVG(DISTINCT n), COUNT(DISTINCT a), SUM(a) FROM t"
        " GROUP BY g ORDER BY g DESC",
        "SELECT g, COUNT(DISTINCT s) c, SUM(DISTINCT a) / COUNT(DISTINCT n) FROM t GROUP BY g"
        " HAVING COUNT(DISTINCT a) > 1 ORDER BY c, g LIMIT 3",
    )
    check(
        compared,
        "SELECT g, GROUP_CONCAT(s, '=', a ORDER BY n DESC, id SEPARATOR '; '), SUM(a) FROM t GROUP BY g",
        "SELECT GROUP_CONCAT(DISTINCT n ORDER BY n), COUNT(*), COUNT(DISTINCT s) FROM t WHERE id > 3",
        "SELECT BIT_AND(a), BIT_OR(id), BIT_XOR(n), 5 + 5, CONCAT('a', 1) FROM t",
        "SELECT BIT_AND(a), BIT_OR(a), 1.5 * 2 FROM t WHERE id > 90",
        "SELECT id, SUM(a) OVER (PARTITION BY id) AS w, RANK() OVER (PARTITION BY g, id ORDER BY s)"
        " FROM t ORDER BY w DESC, id LIMIT 5",
    )
    # Aliases that hide columns, of which they are made or not.
    check(
        compared,
        "SELECT SUM(a) AS a, AVG(a) AS g, COUNT(*) FROM t",
        "SELECT g, SUM(a) AS a, MAX(a), COUNT(*) AS n FROM t GROUP BY g HAVING SUM(a) > 9 AND a < 99"
        " ORDER BY a DESC, g",
        "SELECT -g AS g, COUNT(*), SUM(a) + g FROM t GROUP BY g ORDER BY SUM(a), MAX(id)",
        "SELECT g + 1 AS g, COALESCE(SUM(a), 0) AS a FROM t GROUP BY g + 1 ORDER BY g, a",
        "SELECT id, -a AS a FROM t ORDER BY a, id LIMIT 9",
    )


def test_what_cannot_be_merged_is_computed_from_the_rows(compared: ComparedCluster) -> None:
    compared.create(
        "id BIGINT PRIMARY KEY, g INT, a INT, s VARCHAR(20), n DECIMAL(10,3), f FLOAT, b VARBINARY(9)"
    )
    compared.insert(
        ["id", "g", "a", "s", "n", "f", "b"],
        [
            [str(i), str(i % 4), str(i % 7) if i % 5 else "NULL",
             f"'{('x', 'X', 'y ', 'y', '1', '01')[i * i % 6]}'", f"{i % 3}.5", "0.1", f"x'ff0{i % 3}'"]
            for i in range(1, 60)
        ],
    )  # fmt: skip
    check(
        compared,
        "SELECT g, GROUP_CONCAT(id ORDER BY id DESC LIMIT 3) AS c, STD(a) > 1 FROM t GROUP BY g ORDER BY c"
        if compared.server.family is Family.MARIADB
        else "SELECT g, GROUP_CONCAT(id ORDER BY id DESC) AS c, STD(a) > 1 FROM t GROUP BY g ORDER BY c",
        "SELECT g, SUM(a), MAX(b), COUNT(*) FROM t WHERE id > 9 GROUP BY g WITH ROLLUP",
        "SELECT id, RANK() OVER (ORDER BY n, s, id), SUM(n) OVER w FROM t AS x WHERE x.a IS NOT NULL"
        " WINDOW w AS (PARTITION BY g ORDER BY id) ORDER BY id LIMIT 20, 9",
        "SELECT (AVG(a) + 1) * 2, AVG(a) / 3, CAST(AVG(a) AS SIGNED), COUNT(DISTINCT a) FROM t",
        "SELECT g, MIN(id) FROM t GROUP BY g HAVING NULLIF(COUNT(*), 1) > 1 OR MAX(s) LIKE 'z%' ORDER BY 1",
        "SELECT DISTINCT g, COUNT(*) > 5 FROM t GROUP BY g, a HAVING COUNT(*) / 3 > 0.5 ORDER BY g, 2",
        "SELECT SUM(DISTINCT n), BIT_XOR(a), GROUP_CONCAT(DISTINCT a ORDER BY a), 'x' FROM t WHERE id > 90",
        "SELECT g, CONCAT(MAX(s), '!') AS m FROM t GROUP BY g ORDER BY m DESC, g",
    )
    warned = []
    for each in (compared.spread[3], compared.direct):
        assert ask(each, "SELECT STD(a) FROM t WHERE s + 1 >= 1 AND id < 9").error is None
        warned.append(sorted(rows(each, "SHOW WARNINGS")))
    assert warned[0] == warned[1] != []
    sql = "SELECT g, JSON_ARRAYAGG(id) FROM t WHERE id < 3 GROUP BY g"
    assert ask(compared.spread[2], sql).rows == ask(compared.direct, sql).rows
    connection = compared.proxy.connect(database="by3")
    run(connection, "INSERT INTO t (id, g, a) VALUES (100, 9, 5)")
    assert ask(connection, "SELECT g, STD(a) FROM t WHERE id > 90 GROUP BY g").rows == [
        (b"9", ask(compared.direct, "SELECT STD(5)").rows[0][0])
    ]
    connection.rollback()
    # Of a snowman a session with latin1 gets a question mark, as good as any other.
    run(connection, "INSERT INTO t (id, s) VALUES (100, _utf8mb4 x'e29883')")
    run(connection, "SET NAMES latin1")
    listed = "SELECT GROUP_CONCAT(s) FROM t WHERE id = 100 OR id = 6"
    assert ask(connection, listed).error is not None
    assert ask(connection, listed.replace("100", "5")).error is None
    run(connection, "SET NAMES utf8mb4")
    assert ask(connection, listed).error is None
    connection.rollback()
    run(connection, "SET SESSION TRANSACTION READ ONLY")
    assert ask(connection, "SELECT VARIANCE(a) FROM t WHERE id = 5 OR id = 10").rows == [
        (None,)
    ]
    # The digits of a FLOAT are more than its text has.
    answer = ask(connection, "SELECT STD(f) FROM t")
    assert answer.error == (1235, "unsupported: STD over several shards")
    assert ask(connection, "SELECT STD(a) FROM t FOR UPDATE").error is not None


def test_the_rows_have_the_columns_that_the_table_shows_to_the_account(
    compared: ComparedCluster,
) -> None:
    compared.create(
        "id BIGINT PRIMARY KEY, h INT DEFAULT 3 INVISIBLE, a INT, u INT NOT NULL UNIQUE,"
        " v INT AS (a * 2) VIRTUAL"
    )
    compared.insert(
        ["id", "h", "a", "u"], [[str(i), str(i % 3), str(i % 7), str(i)] for i in range(1, 60)]
    )
    check(
        compared,
        "SELECT h, SUM(a), BIT_XOR(v), STD(a) > 1 FROM t GROUP BY h WITH ROLLUP",
        "SELECT MIN(h) AS v, STD(v) > 1 FROM t GROUP BY a HAVING v < 1",
        "SELECT STD(1), COUNT(*) FROM t",
    )
    connection = compared.proxy.connect(database="by3")
    for each in (connection, compared.direct):
        run(each, "SET sql_mode = ''")
    # A column hides the alias, even one that `*` leaves out.
    sql = "SELECT 1 AS h, COUNT(*), STD(a) > 1 FROM t GROUP BY h ORDER BY COUNT(*)"
    assert ask(connection, sql).rows == ask(compared.direct, sql).rows
    # Rows have no key and no default.
    for sql in ("SELECT MAX(DEFAULT(h)), STD(a) FROM t", "SELECT STD(_rowid) FROM t"):
        answer = ask(connection, sql)
        assert answer.error == (1235, "unsupported: STD over several shards")
    run(connection, "SET sql_mode = 'ONLY_FULL_GROUP_BY'")
    answer, own = (
        ask(each, "SELECT u, a, STD(a) FROM t GROUP BY u")
        for each in (connection, compared.direct)
    )
    assert own.error is None
    if compared.server.family is Family.MYSQL:
        assert answer.error == (
            1235,
            "unsupported: a column that is not grouped over several shards",
        )


def test_parts_that_need_several_shards_are_put_together(compared: ComparedCluster) -> None:
    compared.create(
        "id BIGINT PRIMARY KEY, a INT, s VARCHAR(20), n DECIMAL(10,3), d TIMESTAMP NULL"
    )
    compared.insert(
        ["id", "a", "s", "n", "d"],
        [
            [str(i), str(i % 7) if i % 5 else "NULL", f"'{('x', 'X', 'ä ', 'y', 'Yz')[i % 5]}'",
             f"{i % 3}.5", f"'2024-01-{1 + i % 28:02} 10:00:00'"]
            for i in range(1, 60)
        ],
    )  # fmt: skip
    check(
        compared,
        "(SELECT id FROM t ORDER BY id LIMIT 2) UNION ALL (SELECT a FROM t ORDER BY a DESC LIMIT 3)",
        "SELECT 'all' AS k, COUNT(*) AS c FROM t UNION ALL SELECT s, COUNT(*) FROM t GROUP BY s"
        " ORDER BY c DESC, k LIMIT 4",
        "SELECT a, SUM(n) FROM t GROUP BY a UNION SELECT a, n FROM t WHERE id = 3 ORDER BY 1, 2",
        "SELECT MAX(d), COUNT(*) FROM t UNION ALL SELECT NULL, 5",
        "SELECT COUNT(*) FROM ((SELECT id FROM t LIMIT 5) UNION ALL SELECT MAX(a) FROM t) d",
        "SELECT MAX(m) FROM (SELECT MIN(a) m FROM t) d",
        "SELECT COUNT(*) FROM (SELECT COUNT(*) c FROM (SELECT MAX(id) i, 1 AS v FROM t WHERE id < 9) x) y",
        "SELECT AVG(m), MAX(k) FROM (SELECT s AS k, SUM(n) AS m FROM t GROUP BY s) d",
        "WITH x AS (SELECT a, COUNT(*) AS c FROM t GROUP BY a), y (b) AS (SELECT MAX(a) FROM t)"
        " SELECT x.a, c / 3, RANK() OVER (ORDER BY x.a) FROM x JOIN y ON x.a < y.b ORDER BY 1",
    )
    # MariaDB gives a TIMESTAMP other flags where a UNION is sorted.
    sql = "SELECT d, id FROM t WHERE id = 8 UNION ALL SELECT d, id FROM t WHERE id < 3 ORDER BY 1, 2"
    theirs = ask(compared.direct, sql)
    assert not differences(ask(compared.spread[3], sql), theirs)
    for sql, refusal in (
        ("SELECT a, SUM(n) FROM t GROUP BY a UNION SELECT a, COUNT(*) FROM t GROUP BY a",
         "a UNION of other types in 'SUM(n)' over several shards"),
        ("SELECT COUNT(*), COUNT(*) FROM t UNION ALL SELECT 1, 2",
         "two columns of one name in a part of this over several shards"),
    ):  # fmt: skip
        assert ask(compared.spread[3], sql).error == (1235, f"unsupported: {refusal}")


def test_strings_with_a_value_where_there_are_no_rows_are_sorted_by_what_they_are(
    compared: ComparedCluster,
) -> None:
    compared.create("id BIGINT PRIMARY KEY, y YEAR, d DATETIME")
    compared.insert(
        ["id", "y", "d"],
        [[str(i), f"{2000 + i % 9}" if i % 4 else "NULL", f"'2004-0{1 + i % 7}-01'" if i % 3 else "NULL"] for i in range(1, 40)],
    )  # fmt: skip
    check(
        compared,
        "SELECT id, COALESCE(MAX(y), '2004-01-01') AS m FROM t GROUP BY id ORDER BY m DESC, id",
        "SELECT id, COALESCE(MAX(d), '2004-05-01') AS m FROM t GROUP BY id ORDER BY m DESC, id",
    )
    if compared.server.family is Family.MARIADB:
        compared.create("id BIGINT PRIMARY KEY, s CHAR(10) COLLATE utf8mb4_unicode_nopad_ci")
        words = ("a", "a\\t", "a b", "", "\\t", "b", "A")
        compared.insert(["id", "s"], [[str(n), f"'{word}'"] for n, word in enumerate(words, 1)])
        check(
            compared,
            "(SELECT s, id FROM t ORDER BY id LIMIT 9) UNION SELECT s, id + 1 FROM t WHERE id < 4 ORDER BY s, id",
        )
