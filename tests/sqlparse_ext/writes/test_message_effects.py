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
    together,
)
from tests.cases import cases, in_turn
from tests.sqlparse_ext.facts import statement
from tests.sqlparse_ext.writes.test_completion import BY_PRIMARY, CURRENT, FIRST, LAZY, NOW_NS


NEW, RESCHEDULE, HEARTBEAT, ACK, REMOVE, UNKNOWN, TOUCH = EffectKind


@in_turn
@pytest.mark.parametrize(
    ("sql", "kind", "ids"),
    [
        ("UPDATE m SET time_acked = 1800000000000000005, time_next = NULL WHERE id = 7 AND time_acked IS NULL", ACK, [7]),
        ("UPDATE m SET time_acked = 1800000000000000005 WHERE id IN (1, 2, NULL)", ACK, [1, 2]),
        ("UPDATE m SET time_acked = 1800000000000000005 WHERE id = 'a'", ACK, [b"a"]),
        ("UPDATE m SET time_acked = 1800000000000000005 WHERE id = 7 AND tenant = 3", ACK, None),
        ("UPDATE m SET time_acked = 1800000000000000005 WHERE id = 7 OR id = 8", ACK, None),
        ("UPDATE m SET time_acked = 1800000000000000005 WHERE id IN (1, 2) LIMIT 1", ACK, None),
        ("UPDATE m SET time_acked = 1800000000000000005 WHERE id = 7 AND body IS NULL", ACK, None),
        ("UPDATE m SET time_acked = 1800000000000000005 WHERE priority = 3", ACK, None),
        ("UPDATE m SET time_acked = 1800000000000000005", ACK, None),
        ("UPDATE m SET time_acked = NULL, time_next = 0 WHERE id = 7", RESCHEDULE, [7]),
        ("UPDATE m SET time_next = 5 WHERE id IN (1, 2) AND time_acked IS NULL", RESCHEDULE, [1, 2]),
        ("UPDATE m SET time_next = 5 WHERE id IN (1, 2) AND tenant = 3", RESCHEDULE, [1, 2]),
        ("UPDATE m SET time_next = NOW() + INTERVAL 1 HOUR WHERE id = 1", RESCHEDULE, [1]),
        ("UPDATE m SET time_next = NOW() + INTERVAL 1 HOUR WHERE id = 1 AND time_next > 5", RESCHEDULE, [1]),
        ("UPDATE m SET time_next = 0, v = time_next WHERE id = 1", RESCHEDULE, [1]),
        ("UPDATE m SET time_next = time_next + INTERVAL 1 MINUTE WHERE id = 1", HEARTBEAT, [1]),
        ("UPDATE m SET v = 1, `time_next`=`m`.`time_next` + 60 WHERE id IN (1, 2)", HEARTBEAT, [1, 2]),
        ("UPDATE m SET time_next = time_next + INTERVAL 1 MINUTE WHERE worker = 'x'", HEARTBEAT, None),
        ("UPDATE m SET priority = priority - 1 WHERE id > 5", RESCHEDULE, None),
        ("UPDATE m SET id = 5 WHERE id = 6", UNKNOWN, None),
        ("UPDATE m, u SET m.time_acked = 1800000000000000005 WHERE m.id = u.id", UNKNOWN, None),
        ("UPDATE m SET time_acked = 1800000000000000005 WHERE id = 7 /*!40000 OR 1 */", ACK, None),
        ("UPDATE m SET body = 'a' WHERE id = 7", TOUCH, [7]),
        ("UPDATE m SET epoch = 0 WHERE id = 7", TOUCH, [7]),
        ("REPLACE INTO m (id, time_next) VALUES (1, 7), (2, 8)", RESCHEDULE, [1, 2]),
        ("REPLACE INTO m VALUES (1, 2, 3)", RESCHEDULE, None),
        ("REPLACE INTO m (id) SELECT id FROM u", RESCHEDULE, None),
        ("REPLACE INTO m (id, priority) VALUES (1, f(2))", RESCHEDULE, None),
        ("DELETE FROM m WHERE id = 7", REMOVE, [7]),
        ("DELETE FROM m WHERE id IN (1, 2) AND time_acked IS NOT NULL", REMOVE, None),
        ("DELETE FROM m", REMOVE, None),
        ("DELETE m FROM m JOIN u USING (id)", REMOVE, None),
        ("TRUNCATE m", REMOVE, None),
        ("LOAD DATA INFILE 'x' INTO TABLE m", NEW, None),
        ("LOAD DATA LOW_PRIORITY LOCAL INFILE 'x' REPLACE INTO TABLE m", RESCHEDULE, None),
        ("LOAD DATA INFILE 'replace' IGNORE INTO TABLE m", NEW, None),
        ("INSERT INTO m SELECT * FROM u", NEW, None),
        ("INSERT INTO m VALUES (1, 2, 3)", NEW, None),
        ("INSERT INTO m (id) VALUES (f(1))", NEW, None),
        ("INSERT INTO m (id) VALUES (1), (NULL)", NEW, None),
        ("INSERT INTO m (body) VALUES ('a')", NEW, None),
        ("INSERT INTO m (id, priority) VALUES (1, f(2))", NEW, None),
        ("INSERT INTO m (id, time_next) VALUES (1, 1.5)", NEW, None),
        ("INSERT INTO m (id, time_acked) VALUES (1, NOW() + 1)", NEW, None),
        ("INSERT IGNORE INTO m (id) VALUES (1)", NEW, None),
        ("INSERT INTO m (id) VALUES (1) ON DUPLICATE KEY UPDATE body = 'a'", NEW, None),
        ("INSERT INTO m (id) VALUES (1) ON DUPLICATE KEY UPDATE body = 'a', time_next = 0", RESCHEDULE, None),
        ("INSERT INTO m SET time_next = 0 ON DUPLICATE KEY UPDATE body = 'a'", NEW, None),
        ("INSERT INTO m SELECT * FROM u ON DUPLICATE KEY UPDATE Priority = 3", RESCHEDULE, None),
        ("INSERT INTO m (id) VALUES " + ", ".join(["(1)"] * 201), NEW, None),
    ],
)  # fmt: skip
def test_effects(sql, kind, ids):
    assert effect(statement(sql), CURRENT) == Effect(kind, None if ids is None else tuple(ids))


@pytest.mark.parametrize(
    ("sql", "needed"),
    [
        ("DELETE FROM m WHERE tenant = 7", True),
        ("TRUNCATE m", True),
        ("UPDATE m SET time_next = 5 WHERE id = 1", True),
        ("DELETE FROM m WHERE id = 7", False),
        ("UPDATE m SET time_acked = 1800000000000000005", False),
        ("INSERT INTO m (id) VALUES (1)", False),
    ],
)
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


def test_effects_of_one_statement_executed_often_are_one_effect():
    new = Effect(NEW, (1,), (Key(1, 5, 0),)), Effect(NEW, (2,), (Key(2, 7, 9),))
    assert together(new) == Effect(NEW, (1, 2), (Key(1, 5, 0), Key(2, 7, 9)))
    assert together([Effect(ACK, (1,)), Effect(ACK, (2, 3))]) == Effect(ACK, (1, 2, 3))
    assert together([]) is None
    generated = Effect(NEW, None, generated=Key(None, 5, 0))
    assert together([generated]) is generated


def test_of_one_effect_without_ids_or_of_very_many_none_is_known():
    assert together([Effect(ACK, (1,)), Effect(ACK, None)]) == Effect(ACK, None)
    assert together([Effect(NEW, (n,), (Key(n, 0, 0),)) for n in range(201)]) == Effect(
        NEW, None
    )
    assert together([Effect(ACK, (n,)) for n in range(201)]) == Effect(ACK, tuple(range(201)))


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
