from streamfrom.engine.messaging.claims.claim_writes import ClaimRequest, take
from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.table.message import ClaimedRow, ClaimResult, MessageKey
from tests.engine.messaging.conversations import answered
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


NOW_NS = 1000 * 10**9
SECOND_NS = 10**9
LAZY = loaded(raw_table("msg"))
WRITTEN = loaded(raw_table("msg", DEFAULT_COMMENT + ",vt_lease=written"))
BY_ID = b"`msg` FORCE INDEX (`PRIMARY`)"


def request(*ids, unwritten=()):
    return ClaimRequest(
        1, "0", ids, ("id", "message"), {i: MessageKey(i, 0, 0) for i in unwritten}
    )


def row(ident, time_next_ns=0):
    return (b"%d" % time_next_ns, ident), b"body"


def test_a_message_that_was_never_sent_is_read_and_nothing_is_written():
    queries, result = answered(
        take(LAZY, request(b"1", b"2"), NOW_NS),
        StoreAnswer(rows=[row(b"2", 5), row(b"1")], types=b"it"),
    )
    (query,) = queries
    assert query.sql == (
        b"SELECT IFNULL(time_next, 0), `id`, `id`, `message` FROM " + BY_ID + b" WHERE `id` IN"
        b" (1, 2) AND time_acked IS NULL AND (time_next IS NULL OR time_next <= 1000000000000)"
        b" AND IFNULL(epoch, 0) = 0"
        b" AND NOT (@@global.read_only OR @@global.innodb_read_only)"
    )
    assert (query.values, query.commits, query.is_apart) == (2, False, True)
    due_ns = NOW_NS + 30 * SECOND_NS
    assert result == ClaimResult(
        (
            ClaimedRow(b"2", "0", 0, 5, due_ns, b"body", False, b"it"),
            ClaimedRow(b"1", "0", 0, 0, due_ns, b"body", False, b"it"),
        )
    )


def test_a_send_that_no_row_shows_is_counted_before_the_row_is_claimed():
    queries, result = answered(
        take(LAZY, request(b"1", b"2", unwritten=[b"1", b"2"]), NOW_NS),
        StoreAnswer(rows=[((b"1",), b"")]),
        StoreAnswer(affected=1),
        StoreAnswer(rows=[((b"1", b"7", b"1"), b"body"), ((b"3", b"7", b"2"), b"body")]),
        StoreAnswer(affected=2),
        StoreAnswer(),
    )
    assert queries[0].sql == (
        b"SELECT `id` FROM " + BY_ID + b" WHERE `id` IN (1, 2) AND time_acked IS NULL"
        b" AND IFNULL(epoch, 0) = 0 FOR UPDATE SKIP LOCKED"
    )
    assert queries[1].sql == b"UPDATE " + BY_ID + b" SET epoch = 1 WHERE `id` IN (1)"
    assert b"epoch = LEAST(IFNULL(epoch, 0), " in queries[3].sql
    assert not queries[3].commits, "where it is refused the counting must be undone, too"
    assert [(row.id, row.epoch) for row in result.rows] == [(b"1", 1), (b"2", 3)]
