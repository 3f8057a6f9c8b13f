"""The engine's SQL on real servers: it parses, it means what it says, and it uses its indexes."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from streamfrom.engine.messaging.claims.claim_writes import ClaimRequest, claim
from streamfrom.engine.messaging.leases.lease_rows import Release, Shorten, look
from streamfrom.engine.messaging.leases.leases import Lease
from streamfrom.engine.messaging.queue.poll import KeySpan, PollPart, PollRequest, poll
from streamfrom.engine.messaging.store.conversation import At
from streamfrom.engine.messaging.table.discovery import discover
from streamfrom.engine.messaging.table.message import MessageKey
from streamfrom.engine.messaging.upkeep.purge import Purge
from tests.engine.messaging.conversations import from_memory
from tests.sim.memory_store import StoredRow, loaded


pytestmark = pytest.mark.db

NOW_NS = 1_800_000_000 * 10**9
AT = At("0", NOW_NS, is_elected=True)
SECOND_NS = 10**9
COMMENT = (
    "vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size=10,"
    "vt_cache_size=100,vt_poller_interval=30"
)
CURRENT = """CREATE TABLE msg (
    id {id_type} NOT NULL, priority tinyint NOT NULL DEFAULT 50, epoch bigint NOT NULL DEFAULT 0,
    time_next bigint DEFAULT 0, time_acked bigint DEFAULT NULL, message varchar(128),
    PRIMARY KEY (id), INDEX poller_idx (time_acked, priority, time_next DESC)
) COMMENT '{comment}'"""
FIRST = """CREATE TABLE msg (
    time_scheduled bigint, id bigint, time_next bigint, epoch bigint, time_created bigint,
    time_acked bigint, message varchar(128), PRIMARY KEY (time_scheduled, id),
    UNIQUE INDEX id_idx (id), INDEX next_idx (time_next, epoch)
) COMMENT '{comment}'"""


def create(client, database, sql=CURRENT, id_type="bigint", comment=COMMENT):
    client.execute(sql.format(id_type=id_type, comment=comment).encode())
    (raw,) = client.run(discover(database))
    return loaded(raw)


def insert(client, *rows):
    for ident, priority, time_next in rows:
        client.execute(
            b"INSERT INTO msg (id, priority, time_next, message) VALUES (%b, %d, %b, 'hello')"
            % (ident, priority, b"NULL" if time_next is None else b"%d" % time_next)
        )


def request(*ids):
    return ClaimRequest(1, "0", ids, ("id", "message"))


def test_a_null_priority_is_0(client, database):
    client.execute(b"ALTER DATABASE COLLATE utf8mb4_bin")
    create(client, database)
    client.execute(b"ALTER TABLE msg MODIFY priority tinyint NULL")
    (raw,) = client.run(discover(database))
    table = loaded(raw)
    client.execute(b"INSERT INTO msg (id, priority) VALUES (1, NULL), (2, 0)")
    tiers = client.run(poll(table, PollRequest(100), NOW_NS)).tiers
    assert [(tier.priority, *tier.fresh) for tier in tiers if tier.fresh] == [
        (0, MessageKey(b"1", 0, 0)),
        (0, MessageKey(b"2", 0, 0)),
    ]


def test_a_poll_of_parked_rows_reads_the_index_only(client, database):
    table = create(client, database)
    insert(client, *((b"%d" % n, 50, NOW_NS + n) for n in range(1, 200)))
    client.execute(b"ANALYZE TABLE msg")
    client.run(poll(table, PollRequest(10), NOW_NS))
    selects = [sql for sql in client.sent if b"time_next FROM" in sql]
    assert len(selects) == 1
    # MariaDB shows a plan as a table, MySQL 9 as a tree.
    plan = repr(client.rows(b"EXPLAIN " + selects[0]))
    assert "poller_idx" in plan
    assert "sort" not in plan.lower()
    for chain in [sql for sql in client.sent if b"MIN(priority)" in sql]:
        plan = repr(client.rows(b"EXPLAIN " + chain))
        assert re.search("optimized away|No matching min/max|Rows fetched before|Zero", plan)


def test_many_ids_lock_no_row_but_their_own(client, claimer, other, database):
    table = create(client, database)
    insert(client, *((b"%d" % n, 50, 0) for n in range(1, 60)))
    with other.cursor() as cursor:
        cursor.execute("UPDATE msg SET time_acked = 1 WHERE id = 59")
    ids = [b"%d" % n for n in range(1, 59)]
    assert len(claimer.run(claim(table, request(*ids), AT)).rows) == 58


def test_a_look_tells_when_unacked_rows_are_due_and_waits_for_nobody(client, other, database):
    table = create(client, database)
    insert(client, (b"1", 50, 0), (b"2", 50, 7), (b"3", 50, None), (b"4", 50, 9))
    client.execute(b"UPDATE msg SET time_acked = 1 WHERE id = 4")
    with other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE msg SET time_acked = 1 WHERE id = 1")
    assert client.run(look(table, [b"1", b"2", b"3", b"4", b"5"])) == {
        b"1": 0, b"2": 7, b"3": 0,
    }  # fmt: skip


def test_shortening_passes_over_rows_that_somebody_holds_or_has_changed(
    client, claimer, other, database
):
    table = create(client, database)
    insert(client, (b"1", 50, 0), (b"2", 50, 0), (b"3", 50, 0), (b"4", 50, 0))
    won = claimer.run(claim(table, request(b"1", b"2", b"3", b"4"), AT))
    client.execute(b"UPDATE msg SET time_acked = 1, time_next = NULL WHERE id = 1")
    client.execute(b"UPDATE msg SET time_next = 12345 WHERE id = 2")
    with other.cursor() as cursor:
        cursor.execute("UPDATE msg SET time_acked = 1 WHERE id = 3")
    leases = tuple(Lease(row.due_next_ns, row.id, 1) for row in won.rows)
    assert claimer.run(Shorten("0", 1, leases, NOW_NS).talk(table, AT)).ids == (b"4",)
    other.rollback()
    assert client.rows(b"SELECT id, time_next = %d FROM msg ORDER BY id" % NOW_NS) == [
        (b"1", None), (b"2", b"0"), (b"3", b"0"), (b"4", b"1"),
    ]  # fmt: skip


def test_a_release_touches_nothing_that_has_moved_on(client, claimer, database):
    table = create(client, database)
    insert(client, (b"1", 50, 0), (b"2", 50, 0), (b"3", 50, 0))
    won = claimer.run(claim(table, request(b"1", b"2", b"3"), AT)).rows
    client.execute(b"UPDATE msg SET time_acked = 1, time_next = NULL WHERE id = 1")
    client.execute(b"UPDATE msg SET time_next = 12345 WHERE id = 2")
    client.execute(b"UPDATE msg SET epoch = 9 WHERE id = 3")
    before = client.rows(b"SELECT * FROM msg")
    claimer.run(Release(1, "0", won).talk(table, AT))
    assert client.rows(b"SELECT * FROM msg") == before


@pytest.mark.parametrize("sql", [CURRENT, FIRST])
@pytest.mark.parametrize("held", ["id = 2", "id = 3", "id < 9"])
def test_a_purge_waits_for_nobody(client, claimer, other, database, sql, held):
    """A tiny table whose statistics lag: the server may read it in any order."""
    table = create(client, database, sql)
    scheduled = b"time_scheduled" if sql is FIRST else b"epoch"
    client.execute(
        b"INSERT INTO msg (%b, id, time_acked)"
        b" VALUES (1, 1, NULL), (2, 2, NULL), (3, 3, 10)" % scheduled
    )
    claimer.execute(b"SET innodb_lock_wait_timeout = 1")
    with other.cursor() as cursor:
        cursor.execute(f"UPDATE msg SET time_acked = 11 WHERE {held}")
        assert claimer.run(Purge(20).talk(table, AT)).deleted == (1 if held == "id = 2" else 0)
        other.rollback()
    assert claimer.run(Purge(20).talk(table, AT)).deleted == (0 if held == "id = 2" else 1)
    assert client.rows(b"SELECT id FROM msg ORDER BY id") == [(b"1",), (b"2",)]


def test_many_purges_at_the_same_time_share_the_work(client, claimer, other, database):
    table = create(client, database)
    values = b", ".join(b"(%d, 5)" % ident for ident in range(700))
    client.execute(b"INSERT INTO msg (id, time_acked) VALUES %b" % values)
    with other.cursor() as cursor:
        # What another proxy's purge has taken so far.
        cursor.execute(
            "SELECT id FROM msg FORCE INDEX (poller_idx) WHERE time_acked < 9 LIMIT 500"
            " FOR UPDATE SKIP LOCKED"
        )
    assert claimer.run(Purge(9).talk(table, AT)).deleted == 200
    other.rollback()
    assert claimer.run(Purge(9).talk(table, AT)).deleted == 500
    assert client.rows(b"SELECT id FROM msg") == []


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("limit", [1, 5, 12, 100])
def test_the_store_in_memory_answers_as_the_server_does(client, database, limit, newest):
    table = create(client, database)
    table = replace(table, properties=replace(table.properties, newest=newest))
    dice = random.Random(limit)
    rows = [
        StoredRow(
            b"%d" % ident,
            priority=dice.choice([1, 5, 5]),
            # No two moments are alike, because the order of a tie is the server's own.
            time_next_ns=dice.choice([0, None, NOW_NS - 1000 + ident, NOW_NS + ident]),
        )
        for ident in range(1, 60)
    ]
    insert(client, *((row.id, row.priority, row.time_next_ns) for row in rows))

    request = PollRequest(limit, extra=limit % 3)
    for now_ns in (NOW_NS, NOW_NS + 1000):
        by_server = client.run(poll(table, request, now_ns)).tiers
        in_memory, _ = from_memory(table, poll(table, request, now_ns), rows)
        for ours, theirs in zip(in_memory.tiers, by_server, strict=True):
            assert set(ours.fresh) == set(theirs.fresh)
            assert replace(ours, fresh=()) == replace(theirs, fresh=())


def test_spans_are_read_along_the_index(client, database):
    table = create(client, database)
    insert(client, *((b"%d" % n, 50, NOW_NS + n) for n in range(1, 400)))
    insert(client, *((b"%d" % n, 50, 0) for n in range(400, 800)))
    insert(client, *((b"%d" % n, 50, None) for n in range(800, 900)))
    client.execute(b"ANALYZE TABLE msg")
    spans = (
        KeySpan(50, PollPart.NULL, 500, after=b"850"),
        KeySpan(50, PollPart.ZERO, 500, after=b"500"),
        KeySpan(50, PollPart.TIMED, 500, from_ns=NOW_NS + 100, to_ns=NOW_NS + 199),
    )
    request = PollRequest(1000, spans=spans, known=frozenset({50}))
    result = client.run(poll(table, request, NOW_NS))
    assert result.tiers == ()
    nulls, zeros, timed = (sorted(int(key.id) for key in read.keys) for read in result.spans)
    assert nulls == list(range(851, 900))
    assert zeros == list(range(501, 800))
    assert timed == list(range(100, 200))
    for sql in [sql for sql in client.sent if b"time_next FROM" in sql]:
        plan = repr(client.rows(b"EXPLAIN " + sql))
        assert "poller_idx" in plan
        assert "sort" not in plan.lower()
