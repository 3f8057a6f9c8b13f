"""Which messages a statement touches."""

import ast
from dataclasses import replace

import pytest

from streamfrom.sqlparse_ext.writes.completion import complete
from streamfrom.sqlparse_ext.writes.message_effects import (
    Effect,
    EffectKind,
    Key,
    early_moment,
    effect,
)
from tests.cases import cases
from tests.sqlparse_ext.facts import statement
from tests.sqlparse_ext.writes.test_completion import BY_PRIMARY, CURRENT, FIRST, LAZY, NOW_NS


NEW, RESCHEDULE, HEARTBEAT, REORDER, ACK, REMOVE, UNKNOWN, TOUCH = EffectKind


@cases(sql=str, kind=EffectKind, ids=ast.literal_eval)
def test_effects(sql, kind, ids):
    assert effect(statement(sql), CURRENT) == Effect(kind, None if ids is None else tuple(ids))


def test_of_very_many_rows_no_key_is_known():
    sql = "INSERT INTO m (id) VALUES " + ", ".join(["(1)"] * 201)
    assert effect(statement(sql), CURRENT) == Effect(NEW, None)


@cases(sql=str, needed=ast.literal_eval)
def test_what_reschedules_or_frees_ids_that_it_does_not_name_needs_leases(sql, needed):
    found = effect(statement(sql), CURRENT)
    assert found is not None
    assert found.needs_leases is needed


@cases(sql=str)
def test_statements_that_touch_no_message(sql):
    assert effect(statement(sql), CURRENT) is None


@cases(sql=str, keys=ast.literal_eval)
def test_literal_rows_give_their_keys(sql, keys):
    expected = tuple(Key(*key) for key in keys)
    ids = tuple(key.id for key in expected)
    assert effect(statement(sql), CURRENT) == Effect(NEW, ids, expected)


@cases(sql=str)
def test_the_id_that_the_server_generates_comes_from_its_answer(sql):
    change = effect(statement(sql), replace(CURRENT, id_auto_increment=True))
    assert change == Effect(NEW, None, generated=Key(None, 50, 7))
    assert change.answered(42, 1) == Effect(NEW, (42,), (Key(42, 50, 7),))
    assert change.answered(0, 1) == change


def test_of_acks_and_removals_an_answer_tells_how_many_they_were():
    for kind in (EffectKind.ACK, EffectKind.REMOVE):
        assert Effect(kind, (1, 2)).answered(0, 1) == Effect(kind, (1, 2), rows=1)
        assert Effect(kind, (1, 2)).answered(0, None) == Effect(kind, (1, 2))
    assert Effect(EffectKind.RESCHEDULE, (1,)).answered(0, 1) == Effect(
        EffectKind.RESCHEDULE, (1,)
    )


def test_of_several_generated_ids_none_is_known():
    facts = replace(CURRENT, id_auto_increment=True)
    for sql in (
        "INSERT INTO m (body) VALUES ('a'), ('b')",
        "INSERT INTO m (id) VALUES (5), (0)",
    ):
        assert effect(statement(sql), facts) == Effect(NEW, None)


@pytest.mark.parametrize(
    ("sql", "facts", "priority"),
    [
        ("INSERT INTO m (id, time_next) VALUES (1, NOW())", CURRENT, 50),
        ("INSERT INTO m (id) VALUES (1)", FIRST, 0),
    ],
)
def test_a_completed_insert_gives_its_completed_times(sql, facts, priority):
    done = complete(statement(sql), facts, 99)
    assert done is not None
    assert effect(statement(done.text), facts) == Effect(NEW, (1,), (Key(1, priority, 99),))


@cases(sql=str, ids=ast.literal_eval)
def test_a_message_that_is_moved_to_another_group_is_another_than_before(sql, ids):
    facts = replace(CURRENT, groups=frozenset({"batch", "finishes"}))
    assert effect(statement(sql), facts) == Effect(RESCHEDULE, ids)
    assert effect(statement(sql), CURRENT) == (None if ids is None else Effect(TOUCH, ids))


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
