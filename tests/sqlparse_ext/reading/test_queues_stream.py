"""STREAM: what it takes, and the words with which it refuses the rest."""

import ast

import pytest

from streamfrom.sqlparse_ext.errors import SqlError
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.statements import OPAQUE, Kind, Slot, TableRef
from tests.cases import cases
from tests.sqlparse_ext.facts import conditions, shape


@pytest.mark.parametrize(
    ("sql", "columns", "table"),
    [
        ("STREAM * FROM my_message", None, TableRef(None, "my_message")),
        ("stream\n*\tfrom ks.t;", None, TableRef("ks", "t")),
        ("stream * from `ks:-80`.`t`", None, TableRef("ks:-80", "t")),
        ("STREAM id, `message`,x FROM t -- bye", ("id", "message", "x"), TableRef(None, "t")),
        ("STREAM `from` FROM `from`", ("from",), TableRef(None, "from")),
        ("/* c */ STREAM /*vt+ QUERY_TIMEOUT_MS=5 X */ * /* d */ FROM t", None, TableRef(None, "t")),
        ("STREAM stream FROM stream", ("stream",), TableRef(None, "stream")),
    ],
)  # fmt: skip
def test_what_it_takes(sql, columns, table):
    found = shape(sql)
    assert found.kind is Kind.STREAM
    assert found.stream is not None
    assert (found.stream.columns, found.stream.table) == (columns, table)
    assert found.tables == (table,)


@pytest.mark.parametrize(
    ("sql", "limit", "wait"),
    [
        ("STREAM * FROM t", OPAQUE, OPAQUE),
        ("STREAM * FROM t LIMIT 10", Slot(0), OPAQUE),
        ("stream id from t limit 10 wait 0.5;", Slot(0), Slot(1)),
        ("STREAM id FROM t LIMIT NULL WAIT 'x'", None, Slot(0)),
    ],
)
def test_it_may_have_an_end(sql, limit, wait):
    stream = shape(sql).stream
    assert stream is not None
    assert (stream.limit, stream.wait) == (limit, wait)


@cases(sql=str, key=ast.literal_eval, values=ast.literal_eval)
def test_it_may_name_keys(sql, key, values):
    stream = shape(sql).stream
    assert stream is not None
    assert (stream.key, stream.key_values) == (key, values)


def test_directives_are_read_and_double_quotes_are_the_modes():
    sql = 'STREAM /*vt+ QUERY_TIMEOUT_MS=5000 Allow_Scatter */ "a" FROM "t"'
    found = shape(sql, SqlMode.ANSI_QUOTES)
    assert found.directives == {"query_timeout_ms": "5000", "allow_scatter": "true"}
    assert found.stream is not None
    assert found.stream.columns == ("a",)


@cases(sql=str, near=str)
def test_what_it_refuses_and_where(sql, near):
    with pytest.raises(SqlError) as caught:
        shape(sql)
    assert caught.value.wire_code() == (1064, "42000")
    assert str(caught.value).startswith("You have an error in your SQL syntax; ")
    assert str(caught.value).endswith(f"near '{near}' at line 1")
    with pytest.raises(SqlError, match="at line 3"):
        shape(f"\n\n{sql}")


@cases(end=str, instead=str)
def test_what_people_try_is_told_the_way(end, instead):
    with pytest.raises(SqlError) as caught:
        shape(f"STREAM * FROM t {end}")
    assert instead in str(caught.value)
    assert caught.value.wire_code() == (1064, "42000")


def test_stream_stays_a_name_elsewhere():
    assert conditions("SELECT stream FROM stream WHERE stream = 5") == {"stream": [5]}
    assert shape("VSTREAM * FROM t", DEFAULT_MODE).kind is Kind.OTHER
    assert shape("`STREAM` * FROM t").kind is Kind.OTHER
