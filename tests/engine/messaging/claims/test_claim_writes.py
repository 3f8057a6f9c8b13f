"""The statements of a claim; what real servers answer is in test_store_job_servers."""

from dataclasses import replace

from streamfrom.engine.messaging.claims.claim_writes import ClaimRequest, claim, take
from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.table.groups import HELD_NS
from streamfrom.engine.messaging.table.message import ClaimedRow, ClaimResult, MessageKey
from tests.engine.messaging.conversations import answered, at, run
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


NOW_NS = 1000 * 10**9
SECOND_NS = 10**9
TABLE = loaded(raw_table("msg"))


def request(*ids, draw=int):
    return ClaimRequest(1, "-80", ids, ("id", "message"), draw=draw)


def test_a_claim_locks_asks_for_the_rest_writes_and_commits():
    answer = StoreAnswer(
        [((b"1", b"0", b"0"), b"\x011\x01x"), ((b"2", b"2", b"77"), b"\x012\x01y")], types=b"it"
    )
    late = StoreAnswer([((b"3", b"2000000000000"), b"")])
    result, sent = run(claim(TABLE, request(b"1", b"2", b"3", b"4"), at(NOW_NS)), answer, late)
    assert sent == [
        b"SELECT `id`, IFNULL(epoch, 0), IFNULL(time_next, 0), `id`, `message` FROM `msg`"
        b" FORCE INDEX (`PRIMARY`) WHERE `id` IN (1, 2, 3, 4) AND time_acked IS NULL"
        b" AND (time_next IS NULL OR time_next <= 1000000000000) FOR UPDATE SKIP LOCKED",
        b"SELECT `id`, IFNULL(time_next, 0) FROM `msg` FORCE INDEX (`PRIMARY`)"
        b" WHERE `id` IN (3, 4) AND time_acked IS NULL",
        b"UPDATE `msg` FORCE INDEX (`PRIMARY`) SET time_next = CASE `id`"
        b" WHEN 1 THEN 1030000000000 WHEN 2 THEN 1120000000000 ELSE 1120000000000 END,"
        b" epoch = LEAST(IFNULL(epoch, 0), 2147483646) + 1 WHERE `id` IN (1, 2)",
        b"COMMIT",
    ]
    assert result.passed_over == {b"3": 2000 * SECOND_NS}
    assert result.rows == (
        ClaimedRow(b"1", "-80", 0, 0, NOW_NS + 30 * SECOND_NS, b"\x011\x01x", types=b"it"),
        ClaimedRow(b"2", "-80", 2, 77, NOW_NS + 120 * SECOND_NS, b"\x012\x01y", types=b"it"),
    )


def test_every_row_throws_its_own_dice():
    throws = iter([0, (1 << 20) - 1])
    answer = StoreAnswer([((b"1", b"0", b"0"), b""), ((b"2", b"0", b"0"), b"")])
    conversation = claim(TABLE, request(b"1", b"2", draw=lambda: next(throws)), at(NOW_NS))
    result, sent = run(conversation, answer)
    assert len(sent) == 3, "nothing is asked for when all was won"
    waits_s = [(row.due_next_ns - NOW_NS) / SECOND_NS for row in result.rows]
    assert waits_s[0] == 30
    assert 39.9 < waits_s[1] < 40


PARKING = b"UPDATE `msg` FORCE INDEX (`PRIMARY`) SET time_next = 9000000000000000000 WHERE `id` IN (2)"


def test_without_an_index_on_the_id_there_is_no_hint():
    bare = loaded(replace(raw_table("msg"), indexes=()))
    _, sent = run(claim(bare, request(b"1"), at(NOW_NS)))
    assert b"FORCE" not in sent[0]


GROUPED = f"{DEFAULT_COMMENT},vt_group=batch,vt_after=finishes"


def test_a_claim_holds_what_comes_after_a_group_that_is_not_done():
    """Asked by a statement of its own, about rows that were never sent."""
    table = loaded(raw_table("msg", GROUPED, texts=("batch", "finishes")))
    rows = [((ident, epoch, b"0"), b"x") for epoch, ident in ((b"0", b"1"), (b"1", b"2"))]
    rows.append(((b"3", b"0", b"0"), b"x"))
    question = StoreAnswer([((b"3", b"9", b"b", b"50"), b"")])
    result, sent = run(
        claim(table, request(b"1", b"2", b"3"), at(NOW_NS)), StoreAnswer(rows), question
    )
    assert [row.id for row in result.rows] == [b"1", b"2"]
    assert (result.held, result.passed_over) == ((b"3",), {b"3": HELD_NS})
    assert b" WHERE h.`id` IN (1, 3) AND IFNULL(h.`finishes`, '') <> ''" in sent[1]
    assert sent[2].endswith(b" SET time_next = 8000000000000000000 WHERE `id` IN (3)")
    assert sent[3].endswith(b" WHERE `id` IN (1, 2)")
    assert sent[4:] == [b"COMMIT"]


def test_a_spent_member_of_a_group_is_parked_and_others_are_dead_letters():
    comment = f"{GROUPED},vt_max_attempts=2,vt_dead_letter=grave"
    table = loaded(raw_table("msg", comment, texts=("batch", "finishes")))
    spent = StoreAnswer([((b"1", b"2", b"0"), b"x"), ((b"2", b"2", b"0"), b"x")])
    members, columns = (
        StoreAnswer([((b"2",), b"")]),
        StoreAnswer([((b"id", b"1", b"vt_dead_letters_of=msg"), b"")]),
    )
    result, sent = run(claim(table, request(b"1", b"2"), at(NOW_NS)), spent, members, columns)
    assert (result.dead, result.parked) == ((b"1",), (b"2",))
    assert result.why_parked == "members of groups stay"
    assert sent[-3:] == [b"DELETE FROM `msg` WHERE `id` IN (1)", PARKING, b"COMMIT"]


LAZY = loaded(raw_table("msg"))
WRITTEN = loaded(raw_table("msg", DEFAULT_COMMENT + ",vt_lease=written"))
BY_ID = b"`msg` FORCE INDEX (`PRIMARY`)"


def asking(*ids, unwritten=()):
    return ClaimRequest(
        1, "0", ids, ("id", "message"), {i: MessageKey(i, 0, 0) for i in unwritten}
    )


def row(ident, time_next_ns=0):
    return (ident, b"%d" % time_next_ns), b"body"


def test_a_message_that_was_never_sent_is_read_and_nothing_is_written():
    queries, result = answered(
        take(LAZY, asking(b"1", b"2"), at(NOW_NS)),
        StoreAnswer(rows=[row(b"2", 5), row(b"1")], types=b"it"),
    )
    (query,) = queries
    assert query.sql == (
        b"SELECT `id`, IFNULL(time_next, 0), `id`, `message` FROM " + BY_ID + b" WHERE `id` IN"
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
        take(LAZY, asking(b"1", b"2", unwritten=[b"1", b"2"]), at(NOW_NS)),
        StoreAnswer(rows=[((b"1",), b"")]),
        StoreAnswer(affected=1),
        StoreAnswer(rows=[((b"1", b"1", b"7"), b"body"), ((b"2", b"3", b"7"), b"body")]),
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
