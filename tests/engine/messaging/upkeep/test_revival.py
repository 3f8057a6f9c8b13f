"""Parked messages become messages as before."""

from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.upkeep.revival import REVIVED_AT_ONCE, Revived, revive
from tests.engine.messaging.claims.test_first_delivery import BY_ID, NOW_NS
from tests.engine.messaging.conversations import answered
from tests.sim.memory_store import loaded, raw_table


TABLE = loaded(raw_table("msg"))


def parked(*ids):
    return StoreAnswer(rows=[((b"%d" % one, b"9", *[b"x"] * 6), b"") for one in ids])


LEAST, NO_MORE = StoreAnswer(rows=[((b"5",), b"")]), StoreAnswer(rows=[((None,), b"")])


def test_what_the_index_finds_is_due_at_once_and_begins_anew():
    queries, revived = answered(
        revive(TABLE, None, NOW_NS), LEAST, parked(1, 2), NO_MORE, StoreAnswer(affected=1)
    )
    assert queries[1].sql.endswith(b" ORDER BY `id` LIMIT %d" % REVIVED_AT_ONCE)
    assert queries[-1].sql == (
        b"UPDATE " + BY_ID + b" SET time_next = 0, epoch = 0 WHERE `id` IN (1, 2)"
        b" AND time_next = 9000000000000000000 AND time_acked IS NULL"
    )
    assert revived == Revived(1, None), "somebody was faster with the other one"


def test_a_full_page_says_where_the_next_one_begins():
    found = parked(*range(REVIVED_AT_ONCE))
    _, revived = answered(revive(TABLE, None, NOW_NS), LEAST, found, StoreAnswer(affected=1000))
    assert revived.place is not None
    queries, _ = answered(revive(TABLE, revived.place, NOW_NS), parked(), NO_MORE)
    assert b"`id` > 999 " in queries[0].sql


def test_where_nothing_is_parked_nothing_is_written():
    queries, revived = answered(revive(TABLE, None, NOW_NS), LEAST, parked(), NO_MORE)
    assert revived == Revived(0, None)
    assert not any(query.sql.startswith(b"UPDATE") for query in queries)
