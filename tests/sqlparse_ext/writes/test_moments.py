"""Moments beside the time columns of a message table."""

from functools import partial

import pytest

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import Kind
from streamfrom.sqlparse_ext.writes.completion import TableFacts, check_bound, complete
from streamfrom.sqlparse_ext.writes.times import TimeColumns
from tests.cases import cases, in_turn
from tests.growth import is_linear
from tests.sqlparse_ext.facts import statement


NOW_NS = 1_700_000_000_000_000_000
NOW = b"1700000000000000000"
COLUMNS = ("id", "priority", "epoch", "time_next", "time_acked", "body")
FACTS = TableFacts("m", "id", 50, 0, frozenset(COLUMNS), False, False, False, COLUMNS)


def sent(sql, times=FACTS.times, now_ns=NOW_NS):
    """Return what is sent for *sql*, the text itself where nothing changes."""
    found = statement(sql)
    facts = None if found.shape.kind is Kind.SELECT else FACTS
    done = complete(found, facts, now_ns, times)
    return sql if done is None else done.text


def where(condition):
    """Return what becomes of a condition, in four kinds of statements alike."""
    found = set()
    for head in (b"SELECT * FROM m WHERE ", b"DELETE FROM m WHERE ",
                 b"SELECT id FROM m HAVING ", b"SELECT * FROM m JOIN o ON "):  # fmt: skip
        text = sent(head + condition.encode())
        assert text.startswith(head)
        found.add(text[len(head) :].decode())
    (only,) = found
    return only


def test_work_grows_with_named_moments_and_no_faster():
    def prepare(size):
        found = statement(f"SELECT {', '.join(['time_next > NOW()'] * size)} FROM m")
        return partial(complete, found, None, NOW_NS, FACTS.times)

    assert is_linear(prepare, 30, 600)


# What stands for now, and for a moment from now.
MOMENTS = {
    "NOW()": 0, "NOW(6)": 0, "CURRENT_TIMESTAMP": 0, "LOCALTIME()": 0, "SYSDATE()": 0, "UTC_TIMESTAMP()": 0,
    "UNIX_TIMESTAMP()": 0, "UNIX_TIMESTAMP(NOW(6))": 0, "NOW() + INTERVAL 30 DAY": 30 * 86400,
    "DATE_SUB(NOW(), INTERVAL 1 HOUR)": -3600, "TIMESTAMPADD(MINUTE, 5, NOW())": 300,
}  # fmt: skip


@in_turn
@pytest.mark.parametrize("moment", MOMENTS)
@cases(form=str)
def test_a_moment_beside_a_time_column_becomes_nanoseconds(form, moment):
    ns = b"%d" % (NOW_NS + MOMENTS[moment] * 10**9)
    assert where(form.replace("{}", moment)) == form.replace("{}", ns.decode())


@cases(condition=str)
def test_what_is_right_as_it_stands_is_left(condition):
    assert where(condition) == condition


@cases(condition=str)
def test_what_a_server_would_take_for_a_moment_of_1970_is_refused(condition):
    with pytest.raises(
        Unsupported, match=r"which holds nanoseconds since 1970|INTERVAL for a time"
    ):
        where(condition)


@cases(sql=str.encode, expected=str.encode)
def test_statements(sql, expected):
    assert sent(sql) == (expected or sql)
    assert sent(sent(sql)) == sent(sql)


@cases(sql=str.encode)
def test_statements_that_are_refused(sql):
    with pytest.raises(Unsupported, match="which holds nanoseconds since 1970"):
        sent(sql)


def test_another_tables_columns_are_its_own():
    times = TimeColumns(FACTS.times.names, frozenset({"o"}))
    sql = b"SELECT * FROM m JOIN other o ON o.time_next > NOW() AND m.time_next > NOW()"
    assert sent(sql, times) == sql[: sql.rindex(b"NOW")] + NOW


def test_what_is_bound_is_looked_at_too():
    found = statement("SELECT * FROM m WHERE time_next < ? AND body = ?")
    for value in (None, 0, 5, NOW_NS, b"1700000000000000000"):
        check_bound(found.bind((value, b"2026-01-01")), None, FACTS.times)
    for value in (b"2026-01-01 00:00:00", 1795220485):
        with pytest.raises(Unsupported):
            check_bound(found.bind((value, b"")), None, FACTS.times)
    rows = statement("INSERT INTO m (id, time_next) VALUES (?, ?), (?, ?)")
    check_bound(rows.bind((1, 0, 2, None)), FACTS, FACTS.times)
    with pytest.raises(Unsupported):
        check_bound(rows.bind((1, 0, 2, 1795220485)), FACTS, FACTS.times)


def test_a_long_text_is_refused_where_it_may_need_reading():
    long = b"SELECT * FROM m WHERE " + b"body < x OR " * 5_000
    assert sent(long + b"time_next < 5") == long + b"time_next < 5"
    assert sent(long + b"body < NOW()") == long + b"body < NOW()"
    many = b"SELECT * FROM m WHERE id IN (" + b"5, " * 5_000 + b"5) AND time_next < NOW()"
    assert sent(many).endswith(NOW)
    with pytest.raises(Unsupported, match="NOW here with time_next"):
        sent(long + b"time_next < NOW()")
