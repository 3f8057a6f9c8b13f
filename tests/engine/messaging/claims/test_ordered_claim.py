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


def test_acks_of_which_none_can_be_written_change_nothing():
    queries, result = answered(
        claim_in_order(KEYED1, "0", acking(((b"1",), 77)), NOW_NS), StoreAnswer(), StoreAnswer()
    )
    assert [query.sql for query in queries[1:]] == [b"COMMIT"]
    assert (result.acked, result.rows) == ((), ())


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
