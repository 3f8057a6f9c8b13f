"""The questions of a claim in order; what real servers answer is in test_ordered_claim_db."""

from dataclasses import replace

import pytest

from streamfrom.engine.messaging.claims.claim_writes import ClaimRequest
from streamfrom.engine.messaging.claims.ordered_claim import KEYS_AT_ONCE, Claim, claim_in_order
from streamfrom.engine.messaging.store.conversation import At, StoreAnswer
from streamfrom.engine.messaging.table.message import KeyFound, MessageKey
from streamfrom.engine.messaging.table.message_table import MessageTable, load
from tests.engine.messaging.conversations import answered, at
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


NOW_NS = 1000 * 10**9


def table(more):
    loaded = load("ks", raw_table("msg", DEFAULT_COMMENT + more))
    assert isinstance(loaded, MessageTable), loaded
    return loaded


KEYED = table(",vt_key=message,vt_max_per_key=2")
WRITTEN = table(",vt_key=message,vt_max_per_key=2,vt_lease=written")


def claiming(table, asking):
    return claim_in_order(table, asking, at(NOW_NS))


def request(*ids):
    return ClaimRequest(1, "0", ids, ("id",))


def asked(ident, key, time_next_ns=0):
    return (ident, b"%d" % time_next_ns, key), b""


def locked(ident):
    return (ident, b"0", b"0"), b"x"


def told(number, has_started, ident, time_next_ns=0):
    return (b"%d" % number, b"%d" % has_started, ident, b"50", b"%d" % time_next_ns), b""


def test_where_nobody_may_go_nothing_is_locked():
    queries, result = answered(
        claiming(KEYED, request(b"1", b"2", b"3")),
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


@pytest.mark.parametrize("first", [b"1", b"7"])
def test_a_follower_whose_turn_it_is_goes_in_one_round_trip(first):
    followers = replace(request(b"1"), known_keys={b"1": b"'a'"})
    queries, result = answered(
        claiming(KEYED, followers),
        StoreAnswer(rows=[told(0, 0, first), told(0, 0, b"9")]),
        StoreAnswer(rows=[((b"1", b"0"), b"x")]),
        *[StoreAnswer(rows=[((b"7", b"0"), b"x")])] * (first == b"7"),
    )
    assert queries[1].ahead == (queries[0],)
    assert [row.id for row in result.rows] == [first]
    # Where another one goes before, it is read by itself.
    assert all(b"IN (7)" in query.sql for query in queries[2:])


def test_what_was_sent_has_started_though_its_row_does_not_show_it():
    leases = {b"1": NOW_NS + 5, b"2": NOW_NS - 1, b"9": NOW_NS + 7}
    sent = {ident: MessageKey(ident, 50, until_ns) for ident, until_ns in leases.items()}
    asking = replace(request(b"3"), unwritten=sent)
    queries, result = answered(
        claiming(KEYED, asking),
        StoreAnswer(rows=[asked(b"3", b"a")]),
        StoreAnswer(rows=[told(0, 0, b"1"), told(0, 0, b"2"), told(0, 0, b"3")]),
        StoreAnswer(rows=[((b"2",), b"")]),
        StoreAnswer(affected=1),
        StoreAnswer(rows=[((b"2", b"1", b"0"), b"x")]),
        StoreAnswer(affected=1),
        StoreAnswer(),
    )
    # Two that were sent may stand before the first that was not.
    assert queries[1].sql.endswith(b"LIMIT 4)")
    assert [one.id for one in result.found[b"'a'"].started] == [b"1", b"2"]
    # Its lease is over: it is sent again, by a write that counts the first time.
    assert queries[2].sql.startswith(b"SELECT `id` FROM")
    assert queries[3].sql.endswith(b"SET epoch = 1 WHERE `id` IN (2)")
    assert [(row.id, row.epoch, row.is_written) for row in result.rows] == [(b"2", 1, True)]


def test_what_was_sent_is_asked_for_by_its_id_or_for_its_key():
    sent = {b"%d" % one: MessageKey(b"%d" % one, 50, NOW_NS + 5) for one in range(1, 5)}
    known = {b"1": b"'a'", b"2": b"'b'", b"3": None}
    queries, _ = answered(
        claiming(KEYED, replace(request(b"9"), unwritten=sent, sent_keys=known)),
        StoreAnswer(rows=[asked(b"9", b"a"), asked(b"4", b"a")]),
        *[StoreAnswer()] * 2,
    )
    assert b"IN (4, 9)" in queries[0].sql
    assert b"`id` IN (1, 4)" in queries[1].sql


@pytest.mark.parametrize("table", [KEYED, WRITTEN])
def test_what_may_go_is_won_and_what_has_no_key_with_it(table):
    is_written = table is WRITTEN
    rows = [locked(b"1"), locked(b"7")]
    if not is_written:
        rows = [((b"1", b"0"), b"x"), ((b"7", b"0"), b"x")]
    queries, result = answered(
        claiming(table, request(b"1", b"2")),
        StoreAnswer(rows=[asked(b"1", None), asked(b"2", b"a")]),
        StoreAnswer(rows=[told(0, 0, b"7")]),
        StoreAnswer(rows=rows),
        *[StoreAnswer()] * is_written,
    )
    assert b"IN (1, 7)" in queries[2].sql
    assert [(row.id, row.is_written) for row in result.rows] == [
        (b"1", is_written),
        (b"7", is_written),
    ]
    assert result.chosen == {b"7": MessageKey(b"7", 50, 0)}


@pytest.mark.parametrize(
    ("keys", "statements"), [(1, 1), (KEYS_AT_ONCE, 1), (KEYS_AT_ONCE + 1, 2)]
)
def test_a_statement_asks_for_some_keys(keys, statements):
    rows = [asked(b"%d" % one, b"%d" % one) for one in range(keys)]
    ids = [ident for (ident, _, _), _ in rows]
    queries, _ = answered(
        claiming(KEYED, request(*ids)),
        StoreAnswer(rows=rows),
        *[StoreAnswer()] * (statements + 1),
    )
    assert sum(b"UNION ALL" in query.sql for query in queries) == statements


LAZY, STRICT = ",vt_lease=lazy", ",vt_order=strict"


@pytest.mark.parametrize(
    ("settings", "is_elected", "begins"),
    [
        (LAZY, True, b"SELECT `id`, IFNULL(time_next, 0), `id` FROM"),  # a read alone
        (LAZY, False, b"SELECT `id`, IFNULL(epoch, 0), IFNULL(time_next, 0)"),
        (",vt_lease=written", True, b"SELECT `id`, IFNULL(epoch, 0), IFNULL(time_next, 0)"),
        (STRICT, True, b"SELECT `id`, IFNULL(time_next, 0), ''"),  # one key for all
        (STRICT, False, b"SELECT `id`, IFNULL(time_next, 0), ''"),
    ],
)
def test_without_an_election_rows_are_won_by_a_write(settings, is_elected, begins):
    table = loaded(raw_table("msg", DEFAULT_COMMENT + settings))
    job = Claim(1, "-", (b"1",), ("id",))
    assert next(job.talk(table, At("-", 1, is_elected))).sql.startswith(begins)
