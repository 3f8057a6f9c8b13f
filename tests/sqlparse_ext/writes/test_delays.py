"""What is refused on a table whose messages cannot be scheduled for later."""

from dataclasses import replace

import pytest

from streamfrom.sqlparse_ext.errors import DelayRefused
from streamfrom.sqlparse_ext.statements import OPAQUE
from streamfrom.sqlparse_ext.writes.completion import complete
from streamfrom.sqlparse_ext.writes.delays import check_not_delayed, check_several_tables
from tests.cases import cases
from tests.sqlparse_ext.facts import statement
from tests.sqlparse_ext.writes.test_completion import CURRENT, FIRST, NOW_NS


LATER = NOW_NS + 1


def check(sql, facts=CURRENT, arguments=None):
    read = statement(sql)
    done = complete(read, facts, NOW_NS)
    if done is not None:
        read = statement(done.text)
    if arguments is not None:
        read = read.bind(arguments)
    check_not_delayed(read, facts, NOW_NS)


@cases(sql=str)
def test_what_is_due_at_once_passes(sql):
    check(sql)


@cases(sql=str)
def test_what_is_later_or_may_be_is_refused(sql):
    with pytest.raises(DelayRefused, match="vt_delayed of message table 'm' is off"):
        check(sql)


@cases(sql=str)
def test_a_bound_value_counts_as_one_that_is_written(sql):
    for value in (0, None, NOW_NS, b"%d" % NOW_NS):
        check(sql, arguments=(value,))
    for late in (LATER, b"%d" % LATER, OPAQUE):
        with pytest.raises(DelayRefused):
            check(sql, arguments=(late,))


def test_a_default_that_is_later_is_no_way_around():
    facts = replace(CURRENT, default_time_next_ns=LATER)
    for sql in (
        "INSERT INTO m (id) VALUES (1)",
        "INSERT INTO m (id, time_next) VALUES (1, DEFAULT)",
        "INSERT INTO m SET time_next = DEFAULT",
        "INSERT INTO m (id) SELECT id FROM u",
    ):
        with pytest.raises(DelayRefused, match=str(LATER)):
            check(sql, facts)
    check("INSERT INTO m (id, time_next) VALUES (1, 0)", facts)


def test_the_first_layout_is_due_when_it_is_scheduled():
    check("INSERT INTO m (id, message) VALUES (1, 'a')", FIRST)
    check("INSERT INTO m (time_scheduled, id, message) VALUES (NOW(), 1, 'a')", FIRST)
    with pytest.raises(DelayRefused):
        check(f"INSERT INTO m (time_scheduled, id, message) VALUES ({LATER}, 1, 'a')", FIRST)


def test_an_update_of_several_tables_may_write_any_of_them():
    shape = statement("UPDATE u JOIN m ON u.id = m.id SET m.time_next = 0").shape
    with pytest.raises(DelayRefused, match="several tables"):
        check_several_tables(shape, CURRENT)
    other = statement("UPDATE u SET time_next = (SELECT 1 FROM m)").shape
    check_several_tables(other, CURRENT)
