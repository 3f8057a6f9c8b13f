"""Whatever a statement names is found, wherever it stands."""

from collections.abc import Callable
from functools import partial

import pytest

from streamfrom.sqlparse_ext.reading.reach import reach
from tests.growth import is_linear
from tests.sqlparse_ext.facts import shape


def schemas(sql: str) -> set[str]:
    found = reach(shape(sql))
    assert not found.fault
    return {schema for schema, _ in found.tables if schema} | found.schemas


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM t, b.s",
        "SELECT 1 FROM t JOIN b.s ON 1",
        "SELECT 1 FROM (t, b.s)",
        "SELECT 1 FROM t JOIN (b.s) USING (id)",
        "SELECT 1 FROM t PARTITION (p0) x, b.s",
        "SELECT 1 FROM t USE INDEX (a, c), b.s",
        "SELECT 1 FROM t WHERE id IN (SELECT id FROM b.s)",
        "SELECT EXTRACT(YEAR FROM (SELECT d FROM b.s))",
        "SELECT b.fn()",
        "SELECT b . fn ( )",
        "SELECT `b`.`fn`() FROM t b",
        "SELECT b.s.c FROM t b",
        "SELECT b.s.* FROM t b",
        "SELECT b.x FROM t",
        "TABLE b.s",
        "INSERT INTO t TABLE b.s",
        "INSERT INTO t SELECT 1 FROM b.s",
        "INSERT INTO t VALUES (1), ((SELECT 1 FROM b.s))",
        "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = b.fn()",
        "INSERT INTO b.s VALUES (1)",
        "INSERT b.s SET a = 1",
        "REPLACE b.s VALUES (1)",
        "UPDATE t, b.s SET a = 1",
        "UPDATE LOW_PRIORITY b.s SET a = 1",
        "DELETE b.s FROM t, b.s",
        "DELETE FROM t USING t JOIN b.s",
        "SET @a = (SELECT 1 FROM b.s)",
        "SET @a = b.fn()",
        "SHOW TABLES WHERE (SELECT 1 FROM b.s)",
        "SELECT NEXTVAL(b.s)",
        "SELECT NEXT VALUE FOR b.s",
        "EXPLAIN SELECT 1 FROM b.s",
        "DESCRIBE b.s",
        "CREATE TABLE t (id INT REFERENCES b.s (id))",
        "CREATE TABLE t (id INT) UNION = (b.s)",
        "CREATE TABLE t LIKE b.s",
        "CREATE INDEX i ON b.s (id)",
        "RENAME TABLE t TO b.s",
        "ALTER TABLE t RENAME b.s",
        "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE b.s",
        "LOCK TABLES t READ, b.s WRITE",
        "CHECKSUM TABLE t, b.s",
        "CALL b.p()",
        "KILL (SELECT id FROM b.s)",
    ],
)
def test_a_schema_is_found(sql):
    assert "b" in schemas(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.x, t.y FROM t a JOIN u t ON a.x = t.y ORDER BY a.x",
        "WITH c AS (SELECT 1 x) SELECT c.x FROM c",
        "SELECT d.x FROM (SELECT 1 x) d",
        "UPDATE t a JOIN u ON a.x = u.x SET a.y = u.y",
        "DELETE a FROM t a JOIN u ON a.x = u.x",
        "INSERT INTO t (a) VALUES (1) AS new ON DUPLICATE KEY UPDATE a = new.a",
        "SELECT t.* FROM t GROUP BY t.a HAVING COUNT(t.b) > 1",
        "SELECT @@session.autocommit, @a.b",
        "SELECT EXTRACT(YEAR FROM t.d) FROM t",
    ],
)
def test_a_table_or_an_alias_is_no_schema(sql):
    assert schemas(sql) == set()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 INTO @a",
        "WITH x AS (SELECT 1) SELECT * FROM x INTO OUTFILE 'f'",
        "SELECT * FROM t PROCEDURE ANALYSE()",
        "SELECT * FROM {OJ t}",
        "SELECT {d '2020-01-01'}",
        "SELECT [a] FROM t",
        "SELECT .t.a FROM t",
        "SELECT 1 FROM .t",
        "SELECT t.nextval FROM t",
        "SELECT /*+ '*/ 1",
        "SELECT " + "1, " * 1200 + "1 FROM t, u",
        "SELECT 'open",
        "BEGIN NOT ATOMIC SELECT 1; END",
    ],
)
def test_what_is_not_understood_is_a_fault(sql):
    assert reach(shape(sql)).fault


def test_names_beyond_ascii_are_told():
    assert reach(shape("SELECT é FROM t")).has_wide_names
    assert not reach(shape("SELECT 'é' FROM t")).has_wide_names
    assert reach(shape(b"SELECT\xa01")).fault


def test_it_is_worked_out_once():
    found = shape("SELECT 1")
    assert reach(found) is reach(found)


@pytest.mark.parametrize("piece", ["(", "a.b,", "b.f(", "1,", ".", "a.", "FROM t,"])
def test_time_is_linear(piece):
    def reading(count: int) -> Callable[[], object]:
        return partial(reach, shape("SET @a = " + piece * count))

    assert is_linear(reading, 1000, 8000)


def test_a_call_by_the_name_of_a_schema_is_told():
    assert reach(shape("SELECT a.f(1) FROM t")).has_qualified_calls
    assert reach(shape("UPDATE t SET n = a . f ()")).has_qualified_calls
    assert not reach(shape("SELECT f(t.n) FROM a.t JOIN a.u USING (n)")).has_qualified_calls
    assert not reach(shape("INSERT INTO a.t (n) VALUES (1)")).has_qualified_calls
