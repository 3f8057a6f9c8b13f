from streamfrom.sqlparse_ext.writes.insert_gaps import (
    bounded,
    insert_select,
    is_insert_select,
)
from tests.cases import cases
from tests.sqlparse_ext.facts import shape, statement


@cases(sql=str, head=str, query=str)
def test_the_query_stands_alone(sql, head, query):
    found = statement(sql)
    assert is_insert_select(found.shape)
    parts = insert_select(found)
    assert (parts.head.decode(), parts.query.decode()) == (head, query)


def test_what_is_returned_stands_behind_the_query():
    sql = "INSERT INTO t (a) (SELECT b FROM u) RETURNING a, 'x'"
    assert insert_select(statement(sql)) == (
        b"INSERT INTO t (a) ",
        b"SELECT b FROM u",
        b"RETURNING a, 'x'",
    )


@cases(sql=str)
def test_other_statements_are_none(sql):
    assert not is_insert_select(shape(sql))


def test_a_query_is_bounded_whatever_its_own_limit():
    assert bounded(statement("SELECT a FROM t"), 9, b" LOCK") == b"SELECT a FROM t LIMIT 9 LOCK"
    assert (
        bounded(statement("SELECT a FROM t LIMIT 90"), 9)
        == b"SELECT * FROM (SELECT a FROM t LIMIT 90) AS `streamfrom` LIMIT 9"
    )
    inner = "SELECT a FROM t WHERE b = (SELECT b FROM u LIMIT 1)"
    assert bounded(statement(inner), 9) == inner.encode() + b" LIMIT 9"
