"""SELECTs over several shards: what the random test once found, and what it does not try."""

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.cases import cases, in_turn
from tests.fixtures.streams import rows, run
from tests.integration.scatter import ComparedCluster, ask, check, differences


pytestmark = pytest.mark.db


def numbers(compared: ComparedCluster, count: int = 50) -> None:
    compared.create("id BIGINT PRIMARY KEY, a INT, s VARCHAR(20)")
    compared.insert(
        ["id", "a", "s"],
        [[str(n), str(n % 7), f"'{'aAbB'[n % 4]}{n % 5}'"] for n in range(1, count + 1)],
    )


@pytest.fixture
def joined(compared: ComparedCluster) -> ComparedCluster:
    """The table of `numbers`, another one, and a reference table."""
    numbers(compared)
    compared.create("id BIGINT PRIMARY KEY, a INT, b DECIMAL(6,2), s VARCHAR(40)", "u")
    compared.insert(
        ["id", "a", "b", "s"],
        [[str(n), str(n % 3), f"{n % 4}.5", f"'C{n % 5}'"] for n in (*range(1, 40, 3), *range(40, 70))],
        "u",
    )  # fmt: skip
    compared.create("id BIGINT PRIMARY KEY, s VARCHAR(20), name VARCHAR(20)", "r")
    compared.everywhere("INSERT INTO r VALUES (1,'b1','one'), (2,'x','Two'), (3,'y','three')")
    return compared


ITEMS = (
    "COALESCE(SUM(a), 0), SUM(a) / COUNT(*), SUM(n) * 1.2, ROUND(SUM(n) / COUNT(n), 2), AVG(a),"
    " COUNT(*) + 1, MAX(a) - MIN(a), 100 * SUM(a = 1) / COUNT(*), IF(COUNT(*) > 3, 'y', 'n'),"
    " CAST(SUM(a) AS SIGNED), DATE(MAX(d)), CONCAT(COUNT(*), ' rows'), NULLIF(COUNT(*), 12),"
    " UPPER(MAX(s)), CASE WHEN SUM(a) > 20 THEN 'big' ELSE 'small' END, COUNT(DISTINCT a) / 2"
)


@pytest.fixture
def grouped(compared: ComparedCluster) -> ComparedCluster:
    """A table with columns of many types, of whose words `w` some are equal that read differently."""
    compared.create(
        "id BIGINT PRIMARY KEY, g INT, a INT, c INT, n DECIMAL(10,3), s VARCHAR(20), w VARCHAR(20),"
        " k VARCHAR(20), f FLOAT, b VARBINARY(9), d TIMESTAMP NULL, e ENUM('z', 'a'), y YEAR"
    )
    compared.insert(
        ["id", "g", "a", "c", "n", "s", "w", "k", "f", "b", "d", "e", "y"],
        [
            [str(i), str(i % 4), str(i % 7) if i % 5 else "NULL", str(1 + (i % 9 < 3)), f"{i % 3}.5",
             f"'s{i % 9}'", f"'{('x', 'X', 'y ', 'y', '1', '01')[i * i % 6]}'",
             f"'{('x', 'X', 'ä ', 'y', 'Yz')[i % 5]}'", "0.1", f"x'ff0{i % 3}'",
             f"'2024-01-{1 + i % 28:02} 10:00:00'", "'a'", f"{2020 + i % 4}"]
            for i in range(1, 60)
        ],
    )  # fmt: skip
    compared.create("id BIGINT PRIMARY KEY", "u")
    compared.create("id BIGINT PRIMARY KEY, s VARCHAR(20)", "r")
    return compared


@in_turn
@cases(sql=str)
def test_the_answer_is_that_of_one_server(joined: ComparedCluster, sql: str) -> None:
    check(joined, sql)


@in_turn
@cases(sql=str)
def test_unions_have_one_servers_columns_and_rows(joined: ComparedCluster, sql: str) -> None:
    theirs = ask(joined.direct, sql)
    for shards, connection in joined.spread.items():
        mine = ask(connection, sql)
        assert not differences(mine, theirs), shards
        assert mine.rows == theirs.rows, shards


@in_turn
@cases(inner=str)
def test_the_rows_of_a_derived_table_are_counted_as_paginators_do(joined, inner):
    for outer in ("COUNT(*)", "count(*) AS count_1"):
        sql = f"SELECT {outer} FROM ({inner}) AS anon_1"
        for prepared in (False, True):
            theirs = ask(joined.direct, sql, prepared=prepared)
            assert theirs.error is None, theirs.error
            for connection in joined.spread.values():
                assert not differences(ask(connection, sql, prepared=prepared), theirs)


@in_turn
@cases(sql=str)
def test_aggregates_are_those_of_one_server(grouped: ComparedCluster, sql: str) -> None:
    check(grouped, sql.replace("{items}", ITEMS))


@in_turn
@cases(sql=str, refusal=str)
def test_what_one_shard_cannot_know_is_refused(grouped, sql, refusal):
    for connection in (grouped.spread[2], grouped.spread[3]):
        answer = ask(connection, sql)
        assert answer.error is not None
        assert answer.error[0] == 1235, answer.error
        assert refusal is None or answer.error[1].startswith(f"unsupported: {refusal}")


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_the_limit_of_the_session_is_one_of_the_answer(compared, limit):
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


def test_what_is_computed_is_of_the_session_and_its_transaction(grouped):
    check(grouped, "SELECT id, s FROM t UNION ALL SELECT id, w FROM t", in_order=False)
    for connection in grouped.spread.values():
        assert ask(connection, f"SELECT {ITEMS} FROM t", prepared=True).rows == (
            ask(grouped.direct, f"SELECT {ITEMS} FROM t", prepared=True).rows
        )
    connection = grouped.proxy.connect(database="by3")
    run(connection, "INSERT INTO t (id, g, a) VALUES (100, 9, 5), (101, 8, 1)")
    assert ask(connection, "SELECT COUNT(*) + 1 FROM t").rows == [(b"62",)]
    assert ask(connection, "SELECT id FROM t ORDER BY id DESC LIMIT 1").rows == [(b"101",)]
    assert ask(grouped.spread[3], "SELECT COUNT(*) FROM t").rows == [(b"59",)]
    assert ask(
        connection, "SELECT g, STD(a) FROM t WHERE id = 100 OR id = 200 GROUP BY g"
    ).rows == [(b"9", ask(grouped.direct, "SELECT STD(5)").rows[0][0])]
    sql = "SELECT COUNT(*) + 9223372036854775807 FROM t"
    codes = [ask(each, sql).error for each in (connection, grouped.direct)]
    assert [error and error[0] for error in codes] == [1690, 1690]
    connection.rollback()
    assert ask(connection, "SELECT COUNT(*) FROM t").rows == [(b"59",)]
    assert ask(connection, "SELECT COUNT(*) / 0 FROM t").rows == [(None,)]
    assert [warning[1] for warning in rows(connection, "SHOW WARNINGS")] == [1365]
    warned = []
    for each in (grouped.spread[3], grouped.direct):
        assert ask(each, "SELECT STD(a) FROM t WHERE w + 1 >= 1 AND id < 9").error is None
        warned.append(sorted(rows(each, "SHOW WARNINGS")))
    assert warned[0] == warned[1] != []
    sql = "SELECT g, JSON_ARRAYAGG(id) FROM t WHERE id < 3 GROUP BY g"
    assert ask(grouped.spread[2], sql).rows == ask(grouped.direct, sql).rows
    # Of a snowman a session with latin1 gets a question mark, as good as any other.
    run(connection, "INSERT INTO t (id, w) VALUES (100, _utf8mb4 x'e29883')")
    run(connection, "SET NAMES latin1")
    listed = "SELECT GROUP_CONCAT(w) FROM t WHERE id = 100 OR id = 6"
    assert ask(connection, listed).error is not None
    assert ask(connection, listed.replace("100", "5")).error is None
    run(connection, "SET NAMES utf8mb4")
    assert ask(connection, listed).error is None
    connection.rollback()
    run(connection, "SET SESSION TRANSACTION READ ONLY")
    sql = "SELECT VARIANCE(a) FROM t WHERE id = 5 OR id = 10"
    assert ask(connection, sql).rows == [(None,)]


def test_the_rows_have_the_columns_that_the_table_shows_to_the_account(compared):
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
    for sql in (
        "SELECT 1 AS h, COUNT(*), STD(a) > 1 FROM t GROUP BY h ORDER BY COUNT(*)",
        "SELECT a AS u, COUNT(*), STD(h) > 1 FROM t GROUP BY u ORDER BY COUNT(*), u",
    ):
        assert ask(connection, sql).rows == ask(compared.direct, sql).rows
    # Rows have no key and no default.
    for sql in ("SELECT MAX(DEFAULT(h)), STD(a) FROM t", "SELECT STD(_rowid) FROM t"):
        told = str(ask(connection, sql).error)
        assert told.startswith("(1235, 'unsupported: STD over several shards;")
    run(connection, "SET sql_mode = 'ONLY_FULL_GROUP_BY'")
    # By a column that has one value for each row of MySQL's, and any of several for the proxy.
    sql = "SELECT u, a, STD(a) FROM t GROUP BY u"
    assert ask(compared.direct, sql).error is None
    if compared.server.family is Family.MYSQL:
        refusal = "unsupported: going on with rows of several shards: Expression #2 of SELECT"
        assert refusal in str(ask(connection, sql).error)


def test_more_groups_than_are_computed_at_once(compared: ComparedCluster) -> None:
    compared.create("id BIGINT PRIMARY KEY, a INT")
    compared.insert(["id", "a"], [[str(n), str(n // 2)] for n in range(1, 1300)])
    check(compared, "SELECT a, a * COUNT(*) FROM t GROUP BY a ORDER BY a DESC")
    # Grouped by the column: wrong on MySQL, and any row of a group elsewhere.
    answer = ask(compared.spread[2], "SELECT id % 2 AS a, COUNT(*) FROM t GROUP BY a")
    assert (answer.error or [0])[0] == (1055 if compared.server.family is Family.MYSQL else 0)
