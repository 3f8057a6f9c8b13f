"""CREATE, ALTER and DROP QUEUE: what they take, and the words with which they refuse the rest."""

import ast
from functools import partial

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.errors import SqlError
from streamfrom.sqlparse_ext.reading.queues import QueuePart, read_queue
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.statements import OPAQUE, Kind, Slot, TableRef
from tests.cases import cases
from tests.growth import is_linear
from tests.sqlparse_ext.facts import conditions, shape, statement


def read(sql, mode=DEFAULT_MODE):
    return read_queue(statement(sql, mode))


def test_all_that_create_takes():
    found = read(
        "create queue if not exists ks.`q` (a INT COMMENT 'x, (y', `key` INT, KEY k (a), id INT"
        " PRIMARY KEY) SHARD BY hash(`a`) PARTITION BY DAY WITH (`max_backoff` = 1.5,"
        " ORDER = newest, message_cols = 'id|a', prefetch = -1, ack_wait = DEFAULT,);"
    )
    assert found.if_exists
    assert found.table == TableRef("ks", "q")
    assert [part.column for part in found.parts] == ["a", "key", None, "id"]
    assert [part.has_primary_key for part in found.parts] == [False] * 3 + [True]
    assert found.parts[0].text == b"a INT COMMENT 'x, (y'"
    assert found.shard_by == ("hash", "a")
    assert found.partition_by == "DAY"
    assert found.settings == (
        ("max_backoff", "1.5"),
        ("order", "newest"),
        ("message_cols", "id|a"),
        ("prefetch", "-1"),
        ("ack_wait", None),
    )


def test_work_grows_with_columns_and_settings_and_no_faster():
    def prepare(size):
        columns = ", ".join(f"c{place} INT" for place in range(size))
        settings = ", ".join(f"k{place} = 1 + 1" for place in range(size))
        return partial(
            read_queue, statement(f"CREATE QUEUE q ({columns}) WITH ({settings})", DEFAULT_MODE)
        )

    assert is_linear(prepare, 100, 1000)


@cases(part=str, expected=ast.literal_eval)
def test_a_unique_index_contains_the_id_or_not(part, expected):
    (found,) = read(f"CREATE QUEUE q ({part})").parts
    assert found.is_unique_without_id == expected


def test_a_shape_knows_the_queue():
    for sql in (
        "CREATE QUEUE ks.q (a INT)",
        "CREATE QUEUE IF NOT EXISTS ks.q ()",
        "ALTER QUEUE ks.q PAUSE",
        "DROP QUEUE IF EXISTS ks.q",
    ):
        found = shape(sql)
        assert (found.kind, found.tables) == (Kind.QUEUE, (TableRef("ks", "q"),))
    assert shape("RENAME QUEUE q TO r").kind is not Kind.QUEUE
    assert shape("CREATE TABLE queue (a INT)").kind is Kind.DDL


@cases(sql=str, name=str, value=ast.literal_eval)
def test_what_the_others_take(sql, name, value):
    assert getattr(read(sql), name) == value


def test_names_in_double_quotes_under_ansi_quotes():
    found = read('CREATE QUEUE "q" ("a b" INT) WITH ("x" = 1)', SqlMode.ANSI_QUOTES)
    assert found.table == TableRef(None, "q")
    assert found.parts == (QueuePart("a b", b'"a b" INT', False, False),)


@cases(sql=str, words=str)
def test_what_is_refused_says_what_was_expected_and_where(sql, words):
    with pytest.raises(SqlError) as error:
        read(sql)
    assert words in str(error.value)
    assert error.value.mysql_code == 1064


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=8)
VALUES = st.one_of(
    st.integers(0, 10**9).map(str),
    st.from_regex(r"[a-z]{1,8}", fullmatch=True).filter(lambda word: word != "default"),
)


@given(
    st.lists(NAMES, max_size=5),
    st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), VALUES, max_size=4),
    st.booleans(),
    st.sampled_from([" ", "\n", " /* , ( */ ", "\t"]),
)
def test_what_is_written_is_read(columns, settings, ends_with_comma, blank):
    quoted = ["`" + name.replace("`", "``") + "`" for name in columns]
    body = f",{blank}".join(f"{name}{blank}INT" for name in quoted)
    comma = "," if ends_with_comma and columns else ""
    pairs = ", ".join(f"`{key}`{blank}= {value}" for key, value in settings.items())
    found = read(f"CREATE{blank}QUEUE q ({body}{comma}){blank}WITH ({pairs})")
    assert [part.column for part in found.parts] == columns
    assert [part.text.decode() for part in found.parts] == [f"{n}{blank}INT" for n in quoted]
    assert dict(found.settings) == settings


@given(st.text(st.sampled_from("(),=` 'aCREATEQUEWITHSDBY1;?"), max_size=60))
def test_any_text_is_read_or_refused_with_a_sentence(text):
    found = statement(f"CREATE QUEUE q {text}")
    if found.shape.kind is Kind.QUEUE:
        try:
            read_queue(found)
        except SqlError as error:
            assert "syntax" in str(error)  # noqa: PT017


# STREAM: what it takes, and the words with which it refuses the rest.
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
    assert "acknowledge or reschedule what you do not want" in str(caught.value)
    assert str(caught.value).endswith(f"near '{near}' at line 1")
    with pytest.raises(SqlError, match="at line 3"):
        shape(f"\n\n{sql}")


def test_stream_stays_a_name_elsewhere():
    assert conditions("SELECT stream FROM stream WHERE stream = 5") == {"stream": [5]}
    assert shape("VSTREAM * FROM t", DEFAULT_MODE).kind is Kind.OTHER
    assert shape("`STREAM` * FROM t").kind is Kind.OTHER
