"""The questions of a claim in order; what real servers answer is in test_ordered_claim_db."""

from dataclasses import replace

import pytest

from streamfrom.engine.messaging.claims.claim_writes import ClaimRequest
from streamfrom.engine.messaging.claims.ordered_claim import KEYS_AT_ONCE, claim_in_order
from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.table.message import KeyFound, MessageKey
from streamfrom.engine.messaging.table.message_table import MessageTable, load
from tests.engine.messaging.conversations import answered
from tests.sim.memory_store import DEFAULT_COMMENT, raw_table


NOW_NS = 1000 * 10**9


def table(more):
    loaded = load("ks", raw_table("msg", DEFAULT_COMMENT + more))
    assert isinstance(loaded, MessageTable), loaded
    return loaded


STRICT = table(",vt_order=strict")
KEYED = table(",vt_key=message,vt_max_per_key=2")
KEYED1 = table(",vt_key=message,vt_max_per_key=1")


def request(*ids):
    return ClaimRequest(ids, ("id",), lambda: 0)


def asked(ident, key, time_next_ns=0):
    return (ident, b"%d" % time_next_ns, key), b""


def locked(ident):
    return (b"0", b"0", ident), b"x"


def told(number, has_started, ident, time_next_ns=0):
    return (b"%d" % number, b"%d" % has_started, ident, b"50", b"%d" % time_next_ns), b""


def test_where_nobody_may_go_nothing_is_locked():
    queries, result = answered(
        claim_in_order(KEYED, "0", request(b"1", b"2", b"3"), NOW_NS),
        StoreAnswer(rows=[asked(b"1", b"a"), asked(b"3", b"a", NOW_NS + 1)]),
        StoreAnswer(
            rows=[told(0, 1, b"8", NOW_NS + 5), told(0, 1, b"9", NOW_NS + 6), told(0, 0, b"1")]
        ),
        StoreAnswer(),
    )
    assert queries[0].sql.startswith(b"SELECT `id`, IFNULL(time_next, 0), `message` FROM `msg`")
    assert b"`message` = 'a' AND epoch > 0" in queries[1].sql
    assert queries[1].sql.endswith(b"ORDER BY priority, time_next, `id` LIMIT 2)")
    assert queries[2].sql == b"COMMIT"
    assert len(queries) == 3
    assert result.rows == ()
    assert result.passed_over == {b"3": NOW_NS + 1}
    assert result.asked_keys == {b"1": b"'a'", b"3": None}
    started = (MessageKey(b"8", 50, NOW_NS + 5), MessageKey(b"9", 50, NOW_NS + 6))
    assert result.found == {b"'a'": KeyFound(started, (MessageKey(b"1", 50, 0),))}


def test_the_keys_of_followers_are_not_asked_for_again():
    followers = replace(request(b"1"), known_keys={b"1": b"'a'"})
    queries, result = answered(
        claim_in_order(KEYED, "0", followers, NOW_NS),
        StoreAnswer(rows=[told(0, 1, b"8", NOW_NS + 5), told(0, 1, b"9", NOW_NS + 6)]),
        StoreAnswer(rows=[locked(b"1")]),
        StoreAnswer(),
    )
    assert b"`message` = 'a' AND epoch > 0" in queries[0].sql
    assert queries[1].ahead == (queries[0],)
    assert [query.sql for query in queries[2:]] == [b"COMMIT"]
    assert result.asked_keys == {b"1": b"'a'"}
    assert result.rows == ()


def test_a_follower_whose_turn_it_is_goes_in_two_round_trips():
    followers = replace(request(b"1"), known_keys={b"1": b"'a'"})
    queries, result = answered(
        claim_in_order(KEYED, "0", followers, NOW_NS),
        StoreAnswer(rows=[told(0, 0, b"1"), told(0, 0, b"2")]),
        StoreAnswer(rows=[locked(b"1")]),
        StoreAnswer(),
    )
    assert len(queries) == 3
    assert queries[1].ahead == (queries[0],)
    assert queries[2].commits
    assert [row.id for row in result.rows] == [b"1"]


def test_a_follower_that_another_one_goes_before_is_left_as_it_is():
    followers = replace(request(b"1"), known_keys={b"1": b"'a'"})
    queries, result = answered(
        claim_in_order(KEYED, "0", followers, NOW_NS),
        StoreAnswer(rows=[told(0, 0, b"7"), told(0, 0, b"1")]),
        StoreAnswer(rows=[locked(b"1")]),
        StoreAnswer(rows=[locked(b"7")]),
        StoreAnswer(),
    )
    assert b"IN (7)" in queries[2].sql
    assert queries[3].sql.endswith(b"WHERE `id` IN (7)")
    assert [row.id for row in result.rows] == [b"7"]


def acking(*acks, ids=()):
    return replace(
        request(*ids), acks=acks, known_keys=dict.fromkeys(ids, b"'a'"), columns=("id",)
    )


def test_an_ack_and_the_lease_of_the_next_one_are_one_statement():
    queries, result = answered(
        claim_in_order(KEYED1, "0", acking(((b"1",), 77), ids=(b"2",)), NOW_NS),
        StoreAnswer(rows=[((b"1",), b"")]),
        StoreAnswer(rows=[told(0, 1, b"1", NOW_NS + 5), told(0, 0, b"2"), told(0, 0, b"3")]),
        StoreAnswer(rows=[locked(b"2")]),
        StoreAnswer(affected=2),
    )
    assert queries[0].sql.endswith(b"`id` IN (1) AND time_acked IS NULL FOR UPDATE SKIP LOCKED")
    assert queries[2].ahead == tuple(queries[:2])
    due_ns = NOW_NS + 30 * 10**9
    assert queries[3].sql == (
        b"UPDATE `msg` FORCE INDEX (`PRIMARY`) SET time_acked = CASE `id` WHEN 1 THEN 77 END,"
        b" time_next = CASE `id` WHEN 2 THEN %d END,"
        b" epoch = IF(`id` IN (2), LEAST(epoch, 2147483646) + 1, epoch) WHERE `id` IN (2, 1)"
        % due_ns
    )
    assert queries[3].commits
    assert result.acked == (b"1",)
    assert [(row.id, row.due_next_ns) for row in result.rows] == [(b"2", due_ns)]


def test_an_ack_of_a_row_that_somebody_holds_lets_nobody_go():
    queries, result = answered(
        claim_in_order(
            KEYED1, "0", acking(((b"1", b"9"), 77), ((b"5",), 78), ids=(b"2",)), NOW_NS
        ),
        StoreAnswer(rows=[((b"9",), b""), ((b"5",), b"")]),
        StoreAnswer(rows=[told(0, 1, b"1", NOW_NS + 5), told(0, 0, b"2")]),
        StoreAnswer(rows=[locked(b"2")]),
        StoreAnswer(affected=1),
    )
    assert queries[-1].sql == (
        b"UPDATE `msg` FORCE INDEX (`PRIMARY`) SET time_acked = 78, time_next = NULL"
        b" WHERE `id` IN (5)"
    )
    assert queries[-1].commits
    assert (result.acked, result.rows) == ((b"5",), ())


def test_acks_of_which_none_can_be_written_change_nothing():
    queries, result = answered(
        claim_in_order(KEYED1, "0", acking(((b"1",), 77)), NOW_NS), StoreAnswer(), StoreAnswer()
    )
    assert [query.sql for query in queries[1:]] == [b"COMMIT"]
    assert (result.acked, result.rows) == ((), ())


def test_what_may_go_is_claimed_and_what_has_no_key_with_it():
    queries, result = answered(
        claim_in_order(KEYED, "0", request(b"1", b"2"), NOW_NS),
        StoreAnswer(rows=[asked(b"1", None), asked(b"2", b"a")]),
        StoreAnswer(rows=[told(0, 0, b"7")]),
        StoreAnswer(rows=[locked(b"1")]),
        StoreAnswer(rows=[locked(b"7")]),
        StoreAnswer(),
    )
    assert b"IN (1)" in queries[2].sql
    assert b"IN (7)" in queries[3].sql
    assert [row.id for row in result.rows] == [b"1", b"7"]
    assert result.chosen == {b"7": MessageKey(b"7", 50, 0)}


def test_in_strict_order_all_have_the_same_key():
    queries, _ = answered(
        claim_in_order(STRICT, "0", request(b"1"), NOW_NS),
        StoreAnswer(rows=[asked(b"1", b"")]),
        StoreAnswer(rows=[told(0, 1, b"2", NOW_NS + 1)]),
        StoreAnswer(),
    )
    assert b"SELECT `id`, IFNULL(time_next, 0), '' FROM" in queries[0].sql
    assert b"WHERE time_acked IS NULL AND epoch > 0" in queries[1].sql


@pytest.mark.parametrize(
    ("keys", "statements"), [(1, 1), (KEYS_AT_ONCE, 1), (KEYS_AT_ONCE + 1, 2)]
)
def test_a_statement_asks_for_some_keys(keys, statements):
    rows = [asked(b"%d" % one, b"%d" % one) for one in range(keys)]
    ids = [ident for (ident, _, _), _ in rows]
    queries, _ = answered(
        claim_in_order(KEYED, "0", request(*ids), NOW_NS),
        StoreAnswer(rows=rows),
        *[StoreAnswer()] * (statements + 1),
    )
    assert sum(b"UNION ALL" in query.sql for query in queries) == statements


def test_a_key_that_is_a_number_stands_as_one():
    numbers = table(",vt_key=epoch,vt_max_per_key=1")
    queries, _ = answered(
        claim_in_order(numbers, "0", request(b"1"), NOW_NS),
        StoreAnswer(rows=[asked(b"1", b"-7")]),
        StoreAnswer(),
        StoreAnswer(),
    )
    assert b"`epoch` = -7 AND" in queries[1].sql
