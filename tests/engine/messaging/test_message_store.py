import pytest

from streamfrom.engine.messaging.conversation import StoreAnswer
from streamfrom.engine.messaging.leases import Lease
from streamfrom.engine.messaging.memory_store import loaded, raw_table
from streamfrom.engine.messaging.message import ClaimedRow, Purged, Shortenings
from streamfrom.engine.messaging.message_store import (
    TABLES_AT_ONCE,
    ClaimRequest,
    columns_query,
    come_or_gone,
    discover,
    look,
    purge,
    release,
    shorten,
)
from tests.engine.messaging.test_message_table import FIRST


NOW_NS = 1000 * 10**9
SECOND_NS = 10**9
TABLE = loaded(raw_table("msg"))
OLD = loaded(FIRST)


def run(conversation, *answers):
    """Give *answers* in turn, then empty ones; return the result and the statements."""
    sent = []
    given = iter(answers)
    try:
        query = next(conversation)
        while True:
            sent.append(query.sql)
            if query.commits:
                sent.append(b"COMMIT")
            query = conversation.send(next(given, StoreAnswer()))
    except StopIteration as stop:
        return stop.value, sent


def request(*ids, columns=("id", "message"), draw=lambda: 0):
    return ClaimRequest(ids, columns, draw)


def test_a_look_reads_the_unacked_rows_without_a_lock():
    answer = StoreAnswer([((b"1", b"5"), b""), ((b"3", b"0"), b"")])
    found, sent = run(look(TABLE, [b"1", b"2", b"3"]), answer)
    assert sent == [
        b"SELECT `id`, IFNULL(time_next, 0) FROM `msg` FORCE INDEX (`PRIMARY`)"
        b" WHERE `id` IN (1, 2, 3) AND time_acked IS NULL"
    ]
    assert found == {b"1": 5, b"3": 0}


def test_shortening_writes_only_where_the_lease_is_as_it_was():
    leases = [Lease(77, b"1", 1), Lease(78, b"2", 1), Lease(79, b"3", 1)]
    answer = StoreAnswer([((b"1", b"77"), b""), ((b"2", b"99"), b"")])
    found, sent = run(shorten(TABLE, leases, 50), answer)
    assert found == Shortenings((b"1",))
    assert sent == [
        b"SELECT `id`, time_next FROM `msg` FORCE INDEX (`PRIMARY`) WHERE `id` IN (1, 2, 3)"
        b" AND time_acked IS NULL FOR UPDATE SKIP LOCKED",
        b"UPDATE `msg` FORCE INDEX (`PRIMARY`) SET time_next = 50 WHERE `id` IN (1)",
        b"COMMIT",
    ]
    assert run(shorten(TABLE, leases, 50))[1][1:] == [b"COMMIT"]


def test_a_release_is_one_guarded_statement():
    rows = [ClaimedRow(b"1", "0", 0, 0, 50, b""), ClaimedRow(b"2", "0", 4, 7, 60, b"")]
    _, sent = run(release(TABLE, rows))
    assert sent == [
        b"UPDATE `msg` FORCE INDEX (`PRIMARY`) SET time_next = CASE `id` WHEN 1 THEN 0"
        b" WHEN 2 THEN 7 ELSE time_next END, epoch = epoch - 1 WHERE time_acked IS NULL"
        b" AND ((`id` = 1 AND epoch = 1 AND time_next = 50)"
        b" OR (`id` = 2 AND epoch = 5 AND time_next = 60))",
        b"COMMIT",
    ]


def test_a_purge_is_one_batch():
    found = StoreAnswer(rows=[((b"5",), b""), ((b"7",), b"")])
    deleted, sent = run(purge(TABLE, 99), found, StoreAnswer(affected=2))
    assert deleted == Purged(2, 2)
    assert sent == [
        b"SELECT `id` FROM `msg` FORCE INDEX (`poller_idx`) WHERE time_acked < 99 LIMIT 500"
        b" FOR UPDATE SKIP LOCKED",
        b"DELETE `msg` FROM `msg` FORCE INDEX (`PRIMARY`) WHERE `id` IN (5, 7)"
        b" AND time_acked < 99",
        b"COMMIT",
    ]


def test_a_purge_that_finds_nothing_deletes_nothing():
    deleted, sent = run(purge(TABLE, 99), StoreAnswer(rows=[]))
    assert deleted == Purged()
    assert sent[1:] == [b"COMMIT"]


def test_the_first_layout_is_purged_along_its_primary_key():
    _, sent = run(purge(OLD, 99), StoreAnswer(rows=[]))
    assert sent[0] == (
        b"SELECT `id` FROM `my_message` WHERE time_acked < 99 AND time_scheduled < 99 LIMIT 500"
        b" FOR UPDATE SKIP LOCKED"
    )


def test_the_columns_of_a_stream_are_asked_for_without_rows():
    sql = columns_query(TABLE, ("id", "odd`name"))
    assert sql == b"SELECT `id`, `odd``name` FROM `msg` WHERE 1 = 0"


def marked(name, comment=b"vitess_message", options=b""):
    return (b"table", b"0", name, comment, options, None, None, None, None, None), b""


def column(table, name, *, place=b"1", default=None, nullable=b"NO"):
    about = (b"bigint", default, nullable, b"", b"bigint(20)", None)
    return (b"column", place, table, name, *about), b""


def index(table, name, non_unique, part, *, place=b"1"):
    return (b"index", place, table, name, non_unique, part, None, None, None, None), b""


def test_without_marked_tables_discovery_is_one_statement():
    tables, sent = run(discover("it's"), StoreAnswer([]))
    assert tables == ()
    assert len(sent) == 1
    assert b"table_schema = 'it''s'" in sent[0]


def test_a_comment_that_only_looks_like_the_mark_is_none():
    likely = marked(b"likely", b"vitess-message")
    assert run(discover("db", ("likely",)), StoreAnswer([likely]))[0] == ()


DEFINED = (
    column(b"t", b"id"),
    column(b"t", b"epoch", place=b"2", default=b"0", nullable=b"YES"),
    index(b"t", b"PRIMARY", b"0", b"id"),
    index(b"t", b"two", b"1", b"a"),
    index(b"t", b"two", b"1", None, place=b"2"),
)


def test_discovery_puts_columns_and_indexes_together():
    table = marked(b"t", b"vitess_message,vt_ack_wait=1", b"partitioned")
    (raw,), sent = run(
        discover("db"), StoreAnswer([((b"t",), b"")]), StoreAnswer([*DEFINED, table])
    )
    assert len(sent) == 2
    assert raw.comment == "vitess_message,vt_ack_wait=1"
    assert raw.is_partitioned
    assert [(c.name, c.default, c.nullable, c.column_type) for c in raw.columns] == [
        ("id", None, False, "bigint(20)"),
        ("epoch", "0", True, "bigint(20)"),
    ]
    assert [(i.name, i.unique, i.columns) for i in raw.indexes] == [
        ("PRIMARY", True, ("id",)),
        ("two", False, ("a", "")),
    ]


def test_named_tables_alone_are_read_by_one_statement():
    answer = StoreAnswer([*DEFINED, column(b"gone", b"id"), marked(b"t")])
    (raw,), (sent,) = run(discover("db", ("t", "gone")), answer)
    assert (raw.name, len(raw.columns), len(raw.indexes)) == ("t", 2, 2)
    assert sent.count(b"table_name IN ('gone', 't')") == 3, "tables, columns and indexes"


def test_many_tables_are_read_some_at_a_time():
    names = [b"t%03d" % number for number in range(2 * TABLES_AT_ONCE + 1)]
    listed = StoreAnswer([((name,), b"") for name in names])
    answers = [
        StoreAnswer([marked(name) for name in names[start : start + TABLES_AT_ONCE]])
        for start in range(0, len(names), TABLES_AT_ONCE)
    ]
    found, sent = run(discover("db"), listed, *answers)
    assert [raw.name.encode() for raw in found] == names
    assert len(sent) == 1 + len(answers)


def test_tables_that_are_placed_are_read_as_well():
    answer = StoreAnswer([*DEFINED, column(b"u", b"id"), column(b"gone", b"id"), marked(b"t")])
    listed = StoreAnswer([((b"t",), b"")])
    found, (_, sent) = run(discover("db", placed=("u", "t")), listed, answer)
    assert {raw.name: raw.comment for raw in found} == {"t": "vitess_message", "u": ""}
    assert b"table_name IN ('t', 'u')" in sent


ID = column(b"t", b"id")
PRIMARY = index(b"t", b"PRIMARY", b"0", b"id")
NAMES = StoreAnswer([((b"plain",), b""), ((b"t",), b"")])


def test_where_a_lock_hides_tables_nothing_is_known_to_have_gone():
    known = ("t", "gone")
    listed = StoreAnswer([((b"new",), b"")], has_skipped=True)
    assert run(come_or_gone("db", known), listed)[0] is None
    assert run(come_or_gone("db", known), StoreAnswer([]))[0] == {"t", "gone"}


@pytest.mark.parametrize(
    ("parts", "seen", "hidden"),
    [
        ([], [], ["t"]),
        ([ID, PRIMARY, marked(b"t")], ["t"], []),
        # Locked between one part of the answer and the next.
        ([PRIMARY, marked(b"t")], [], ["t"]),
        ([ID, marked(b"t")], [], ["t"]),
    ],
)
def test_discovery_waits_for_no_lock_and_says_what_one_hides(parts, seen, hidden):
    answer = StoreAnswer(parts, has_skipped=True)
    found, sent = run(discover("db", ("t",)), answer, NAMES)
    assert [raw.name for raw in found if not raw.is_hidden] == seen
    assert [raw.name for raw in found if raw.is_hidden] == hidden
    assert sent[-1] == (
        b"SELECT table_name FROM information_schema.tables WHERE table_schema = 'db'"
    )
