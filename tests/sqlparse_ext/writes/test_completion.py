"""What the proxy adds to statements on a message table."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.writes.completion import (
    TableFacts,
    acknowledged,
    check_bound,
    complete,
    is_state_bound,
    preparable,
    sets_state,
)
from streamfrom.sqlparse_ext.writes.times import TimeColumns
from tests.cases import cases, in_turn
from tests.sqlparse_ext.facts import shape, statement


CACHE = StatementCache()
NOW_NS = 1_700_000_000_000_000_000
NOW = b"1700000000000000000"

CURRENT = TableFacts(
    name="m",
    id_column="id",
    default_priority=50,
    default_time_next_ns=0,
    columns=frozenset({"id", "priority", "epoch", "time_next", "time_acked", "body"}),
    first_layout=False,
    id_auto_increment=False,
    in_order=("id", "priority", "epoch", "time_next", "time_acked", "body"),
)
LAZY = replace(CURRENT, is_lazy=True)
BY_PRIMARY = replace(CURRENT, by_primary=True)
FIRST = TableFacts(
    name="m",
    id_column="id",
    default_priority=0,
    default_time_next_ns=None,
    columns=frozenset(
        {"time_scheduled", "id", "time_next", "epoch", "time_created", "time_acked", "message"}
    ),
    first_layout=True,
    id_auto_increment=False,
)


def completed(
    sql: bytes,
    facts: TableFacts | None = CURRENT,
    mode: SqlMode = DEFAULT_MODE,
    times: TimeColumns | None = None,
) -> bytes:
    """Return what is sent for *sql*."""
    before = statement(sql, mode)
    done = complete(before, facts, NOW_NS, times)
    if done is None:
        return sql
    if done.words:
        # What is not read again is what reading it again would have found.
        quick, read = (
            (each.sql, each.mode, each.shape.template, tuple(each.literals), each.runs)
            for each in (
                CACHE.with_words(before, done.text, done.words),
                statement(done.text, mode),
            )
        )
        assert quick == read
    return done.text


@cases(sql=str.encode, expected=str.encode)
def test_an_update_of_unacked_messages_by_id_names_the_primary_key(sql, expected):
    once = completed(sql, BY_PRIMARY)
    assert once == (expected or sql)
    assert completed(once, BY_PRIMARY) == once


@cases(sql=str.encode, expected=str.encode)
def test_acks_become_the_whole_idiom(sql, expected):
    assert completed(sql) == (expected or sql)


@cases(sql=str.encode)
def test_an_ack_that_is_not_completed_is_refused(sql):
    # Of the first table, which is the one that is written where no other is joined.
    for facts in (CURRENT,) if sql.startswith(b"WITH") else (None, CURRENT):
        with pytest.raises(Unsupported, match="UPDATE the queue alone, WHERE id IN"):
            completed(sql, facts, times=CURRENT.times)


@pytest.mark.parametrize(
    "sql",
    [
        b"UPDATE u SET time_acked = 1800000000000000005 WHERE id IN (SELECT m.id FROM m JOIN v USING (id))",
        b"WITH d AS (SELECT id FROM m) UPDATE u SET time_acked = 1800000000000000005 WHERE id IN (SELECT id FROM d)",
    ],
)
def test_a_column_of_a_table_that_is_no_queue_is_no_ack(sql):
    times = CURRENT.times._replace(foreign=frozenset({"u", "v", "d"}))
    assert completed(sql, None, times=times) == sql


@cases(sql=str.encode, expected=str.encode)
def test_what_is_no_ack_is_not_guarded(sql, expected):
    assert completed(sql) == (expected or sql)


@cases(sql=str.encode, expected=str.encode)
def test_time_functions_in_inserts(sql, expected):
    assert completed(sql) == (expected or sql)


@cases(sql=str.encode, expected=str.encode)
def test_rows_of_the_first_layout_get_their_defaults(sql, expected):
    assert completed(sql, FIRST) == (expected or sql)


def test_the_mode_decides_what_is_a_string():
    sql = b'UPDATE m SET "time_acked" = NOW() WHERE "id" = 7'
    expected = (
        b'UPDATE m SET "time_acked" = '
        + NOW
        + b', time_next = NULL WHERE ("id" = 7) AND time_acked IS NULL'
    )
    assert completed(sql, mode=SqlMode.ANSI_QUOTES) == expected
    assert completed(sql) == sql


ASSIGNED = st.lists(
    st.sampled_from(
        [b"time_acked = 1800000000000000005", b"time_acked = NOW()", b"m.time_acked = UNIX_TIMESTAMP() + 3",
         b"time_next = NULL", b"time_next = DATE_ADD(NOW(), INTERVAL 1 DAY)", b"body = 'a=b, c'",
         b"time_acked = f(1, 2)", b"priority = priority + 1", b"epoch = (SELECT 1)"]
    ),
    min_size=1, max_size=4,
)  # fmt: skip
WHERES = st.sampled_from(
    [b"", b" WHERE id = 5", b" WHERE id IN (1, 2, 'x') AND time_acked IS NULL", b" WHERE (id = 1 OR id = 2)",
     b" WHERE a = 1 OR b = 2", b"\nWHERE\tid BETWEEN 1 AND 2", b" where(id=1)", b" WHERE NOT time_acked IS NULL"]
)  # fmt: skip
ENDS = st.sampled_from([b"", b";", b" ORDER BY id", b" LIMIT 5", b" -- bye", b" /* x */ "])


@given(assigned=ASSIGNED, where=WHERES, end=ENDS)
def test_a_completed_statement_is_complete_and_reads_as_one(assigned, where, end):
    once = completed(b"UPDATE m SET " + b", ".join(assigned) + where + end)
    assert completed(once) == once
    before, after = (
        statement(b"UPDATE m SET " + b", ".join(assigned) + where + end),
        statement(once),
    )
    assert after.shape.kind is before.shape.kind
    assert before.shape.assignments.keys() <= after.shape.assignments.keys()
    if "time_acked" in after.shape.assignments:
        assert "time_acked" in after.shape.guards
        assert "time_next" in after.shape.assignments
    assert once.endswith(end)


COUNT = b"epoch = IF(epoch, epoch, IFNULL(IFNULL(time_next, FALSE) <= time_acked, TRUE))"


@cases(sql=str.encode, expected=str.encode)
def test_an_ack_counts_the_send_that_no_lease_has_counted(sql, expected):
    assert completed(sql, LAZY) == expected
    assert completed(expected, LAZY) == expected


@cases(sql=str.encode)
def test_what_is_no_ack_or_counts_by_itself_counts_nothing(sql):
    assert completed(sql, LAZY) == sql


@cases(begin=str.encode)
def test_the_count_stands_behind_the_moment_whatever_literals_are_before_it(begin):
    where = b" WHERE (id IN (1, 2, 3)) AND time_acked IS NULL"
    sql = begin + b", time_next = NULL WHERE id IN (1, 2, 3)"
    assert completed(sql, LAZY) == begin + b", " + COUNT + b", time_next = NULL" + where


@in_turn
@pytest.mark.parametrize(
    "value",
    [
        "0", "1", "-7", "'5'", "5.5", "1 + 1", "-2 * 3", "(1)", "1767225600", "99e15", "TRUE", "(false)",
    ],
)  # fmt: skip
@cases(sql=str)
def test_an_ack_of_1970_is_refused_with_what_to_write(sql, value):
    with pytest.raises(Unsupported, match=r"time_acked, which holds .* write NOW"):
        completed(sql.replace("{}", value).encode())
    # The same is no mistake beside other columns, and where time_acked is compared.
    for fine in (
        "UPDATE m SET priority = {} WHERE time_acked > {}",
        "INSERT INTO m (id, time_next) VALUES (7, 1)",
    ):
        completed(fine.replace("{}", "1").encode())


@cases(sql=str)
def test_what_is_bound_to_an_ack_of_1970_is_refused(sql):
    bound = statement(sql.encode())
    for fine in (None, 1800000000000000005):
        check_bound(bound.bind((fine,)), CURRENT, CURRENT.times)
    for value in (0, 1):
        with pytest.raises(Unsupported, match="write NOW"):
            check_bound(bound.bind((value,)), CURRENT, CURRENT.times)


def test_a_number_that_is_one_of_several_values_is_left():
    for value in ("IF(1, NOW(), 0)", "GREATEST(NOW(), 0)", "IFNULL(NULL, NOW())"):
        for sql in (
            "UPDATE m SET time_acked = {} WHERE id = 7",
            "INSERT INTO m (id, time_acked) VALUES (7, {})",
        ):
            assert b"1700000000000000000" in completed(sql.replace("{}", value).encode())


@cases(sql=str, text=str)
def test_acked_is_an_ack(sql, text):
    assert sets_state(shape(sql))
    assert acknowledged(statement(sql)) == text.encode()


@cases(sql=str)
def test_no_other_state_can_be_set(sql):
    with pytest.raises(Unsupported, match="SET state = 'acked' acknowledges"):
        acknowledged(statement(sql))


def test_a_state_that_is_bound():
    assert is_state_bound(shape("UPDATE q SET state = ?"))
    assert not is_state_bound(shape("UPDATE q SET state = 'acked'"))
    assert not sets_state(shape("UPDATE q SET a = 1 WHERE state = 'acked'"))
    assert not sets_state(
        shape("INSERT INTO q (a) VALUES (1) ON DUPLICATE KEY UPDATE state = 1")
    )


def test_what_a_server_prepares_has_the_same_parameters():
    text = "UPDATE q SET a = ?, q.`state` = ? WHERE state = 'fired' AND id = ?"
    assert preparable(statement(text)) == (
        b"UPDATE q SET a = ?, q.time_acked = ? WHERE state = 'fired' AND id = ?"
    )
