"""Which acks may be answered before they are written."""

import ast

import pytest

from streamfrom.sqlparse_ext.writes.completion import complete
from streamfrom.sqlparse_ext.writes.early_ack import early_moment
from streamfrom.sqlparse_ext.writes.message_effects import effect
from tests.cases import cases
from tests.sqlparse_ext.facts import statement
from tests.sqlparse_ext.writes.test_completion import BY_PRIMARY, CURRENT, LAZY, NOW_NS


ACKED_NS = 1800000000000000005


def moment(sql, facts=CURRENT, *bound):
    sent = statement(sql.encode())
    if done := complete(sent, facts, NOW_NS):
        sent = statement(done.text)
    if bound:
        sent = sent.bind(bound)
    found = effect(sent, facts)
    return None if found is None else early_moment(sent, found)


@pytest.mark.parametrize("facts", [CURRENT, LAZY, BY_PRIMARY])
@cases(sql=str, expected=ast.literal_eval)
def test_an_ack_by_ids_and_nothing_else_may_be_early(sql, expected, facts):
    assert moment(sql, facts) == expected


def test_what_is_bound_counts_as_what_is_written():
    sql = "UPDATE m SET time_acked = ? WHERE id IN (?, ?) AND time_acked IS NULL"
    assert moment(sql, LAZY, ACKED_NS, 1, 2) == ACKED_NS
    assert moment(sql, LAZY, b"%d" % ACKED_NS, 1, 2) is None


@cases(sql=str)
def test_whatever_does_more_or_does_not_say_what_is_committed_first(sql):
    assert moment(sql, LAZY) is None
