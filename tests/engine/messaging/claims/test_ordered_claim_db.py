"""What goes first of a key, asked of real servers: it means what it says, and uses its index."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from random import Random

import pytest

from streamfrom.engine.messaging.claims.claim_writes import ClaimRequest
from streamfrom.engine.messaging.claims.ordered_claim import claim_in_order
from streamfrom.engine.messaging.order.key_order import in_turn, may_go
from streamfrom.engine.messaging.queue.poll import PollRequest, poll
from streamfrom.engine.messaging.store.conversation import At
from streamfrom.engine.messaging.table.discovery import discover
from streamfrom.engine.messaging.table.message import KeyFound, MessageKey
from tests.cases import cases
from tests.engine.messaging.table.test_store_job_servers import NOW_NS
from tests.sim.memory_store import loaded


pytestmark = pytest.mark.db

KEYED = """CREATE TABLE msg (
    id bigint NOT NULL, priority tinyint NOT NULL DEFAULT 50, epoch bigint NOT NULL DEFAULT 0,
    time_next bigint DEFAULT 0, time_acked bigint DEFAULT NULL, message varchar(128), tenant {tenant},
    PRIMARY KEY (id), INDEX poller_idx (time_acked, priority, time_next DESC),
    INDEX order_idx ({index})
) COMMENT 'vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size=10,vt_cache_size=100,vt_poller_interval=30{more}'"""


def create(client, database, more=",vt_key=tenant,vt_max_per_key=1", tenant="varchar(20)"):
    own = "tenant, " if "vt_key" in more else ""
    sql = KEYED.format(
        tenant=tenant, more=more, index=own + "time_acked, epoch, priority, time_next"
    )
    client.execute(sql.encode())
    (raw,) = client.run(discover(database))
    return loaded(raw)


def insert(client, *rows):
    for ident, tenant, epoch, time_next in rows:
        client.execute(
            b"INSERT INTO msg (id, tenant, epoch, time_next) VALUES (%d, %b, %d, %b)"
            % (ident, tenant, epoch, b"NULL" if time_next is None else b"%d" % time_next)
        )


def claimed(claimer, table, *ids):
    request = ClaimRequest(1, "0", ids, ("id",))
    return claimer.run(claim_in_order(table, request, At("0", NOW_NS, is_elected=False)))


def won(result):
    return sorted(int(row.id) for row in result.rows)


def test_the_first_of_a_key_goes_whoever_was_asked_for(client, claimer, database):
    table = create(client, database)
    assert table.advice == ()
    insert(client, *((ident, b"'a'", 0, 0) for ident in (3, 4, 5)))
    insert(client, (6, b"'b'", 0, 7), (7, b"'b'", 0, NOW_NS + 1), (8, b"NULL", 0, 0))
    result = claimed(claimer, table, b"5", b"4", b"6", b"8", b"99")
    assert won(result) == [3, 6, 8]
    assert result.asked_keys == {b"4": b"'a'", b"5": b"'a'", b"6": b"'b'", b"8": None}
    assert [one.id for one in result.found[b"'a'"].heads] == [b"3", b"4"]
    # The one that has started is in flight: nobody else goes.
    again = claimed(claimer, table, b"4", b"7")
    assert won(again) == []
    assert again.passed_over == {b"7": NOW_NS + 1}
    assert [one.id for one in again.found[b"'a'"].started] == [b"3"]


def test_who_holds_the_first_holds_back_the_others(client, claimer, other, database):
    table = create(client, database)
    insert(client, (1, b"'a'", 0, 0), (2, b"'a'", 0, 0))
    with other.cursor() as cursor:
        cursor.execute("UPDATE msg SET message = 'x' WHERE id = 1")
    result = claimed(claimer, table, b"2")
    assert (won(result), result.passed_over) == ([], {b"1": 0})
    other.rollback()
    assert won(claimed(claimer, table, b"2")) == [1]


@pytest.mark.parametrize("in_order", [1, 2, None])
def test_a_claim_chooses_what_may_go_wherever_the_rows_stand(
    client, claimer, database, in_order
):
    """Random rows, some of which were sent and do not show it, against what a walk over all of them finds."""
    keyed = f",vt_key=tenant,vt_max_per_key={in_order}"
    table = create(client, database, keyed if in_order else ",vt_order=strict")
    for seed in range(60):
        dice = Random(seed)
        rows = []
        sent: dict[bytes, MessageKey] = {}
        known: dict[bytes, bytes | None] = {}
        found: defaultdict[bytes, tuple[list[MessageKey], list[MessageKey]]]
        found = defaultdict(lambda: ([], []))
        for ident in range(1, dice.randrange(2, 16)):
            tenant, epoch = dice.choice("ab"), int(dice.random() < 0.1)
            one = MessageKey(b"%d" % ident, dice.randrange(3), dice.choice((0, 7, NOW_NS + 9)))
            rows.append((ident, tenant, epoch, one.priority, one.time_next_ns))
            key = b"'%b'" % (tenant.encode() if in_order else b"")
            started, heads = found[key]
            is_due = one.time_next_ns <= NOW_NS
            if epoch:
                started.append(one)
            elif is_due and dice.random() < 0.3 and len(started) < (in_order or 1):
                sent[one.id] = one._replace(time_next_ns=dice.choice((NOW_NS, NOW_NS + 5)))
                started.append(sent[one.id])
                if dice.random() < 0.7:
                    known[one.id] = key
            elif is_due:
                heads.append(one)
        client.execute(b"DELETE FROM msg")
        values = ", ".join(map(str, rows))
        client.execute(
            f"INSERT INTO msg (id, tenant, epoch, priority, time_next) VALUES {values}".encode()
        )
        asked = [b"%d" % row[0] for row in dice.sample(rows, dice.randrange(1, len(rows) + 1))]
        request = ClaimRequest(1, "0", tuple(asked), ("id",), sent, sent_keys=known)
        result = claimer.run(claim_in_order(table, request, At("0", NOW_NS, is_elected=True)))
        counts = Counter(each for each in result.asked_keys.values() if each is not None)
        expected = set()
        for key, count in counts.items():
            started, heads = found[key]
            every = KeyFound(tuple(started), tuple(sorted(heads, key=in_turn)))
            expected |= {one.id for one in may_go(every, count, in_order or 1, NOW_NS)}
        assert set(result.chosen) == expected, seed


def test_keys_that_the_database_finds_equal_are_one(client, claimer, database):
    client.execute(b"ALTER DATABASE COLLATE utf8mb4_general_ci")
    table = create(client, database)
    insert(client, (1, b"'a'", 0, 0), (2, b"'A'", 0, 0))
    assert won(claimed(claimer, table, b"2", b"1")) == [1]
    assert won(claimed(claimer, table, b"2")) == []


@cases(tenant=str, values=ast.literal_eval)
def test_a_key_may_be_of_any_type_that_is_found_by_its_text(
    client, claimer, database, tenant, values
):
    table = create(client, database, tenant=tenant)
    insert(client, *((ident, values[ident % 2], 0, 0) for ident in range(1, 5)))
    assert won(claimed(claimer, table, b"3", b"4")) == [1, 2]
    assert won(claimed(claimer, table, b"3", b"4")) == []


@pytest.mark.parametrize("more", [",vt_key=tenant,vt_max_per_key=1", ",vt_order=strict"])
def test_a_hot_key_is_read_along_its_index(client, claimer, database, more):
    table = create(client, database, more)
    values = b", ".join(b"(%d, 'hot', %d)" % (ident, ident % 7) for ident in range(2000))
    client.execute(b"INSERT INTO msg (id, tenant, time_next) VALUES " + values)
    client.execute(b"ANALYZE TABLE msg")
    claimed(claimer, table, b"77")
    (sql,) = [sql for sql in claimer.sent if b"UNION ALL" in sql]
    claimer.execute(b"COMMIT")
    plan = repr(client.rows(b"EXPLAIN " + sql))
    assert plan.count("order_idx") >= 2
    before = dict(client.rows(b"SHOW SESSION STATUS LIKE 'Handler_read%'"))
    client.execute(sql, 5)
    after = dict(client.rows(b"SHOW SESSION STATUS LIKE 'Handler_read%'"))
    read = sum(int(after[name]) - int(before[name]) for name in after)
    assert read < 50, plan


def test_a_poll_passes_over_keys_but_for_what_is_not_due_yet(client, database):
    table = create(client, database)
    insert(client, (1, b"'a'", 0, 0), (2, b"'a'", 0, NOW_NS + 5), (3, b"NULL", 0, 0))
    insert(client, (4, b"'b'", 0, 7), (5, b"'c'", 0, 8))
    request = PollRequest(100, passed_over=(b"'a'", b"'b'"))
    (tier,) = client.run(poll(table, request, NOW_NS)).tiers
    assert [key.id for key in (*tier.fresh, *tier.timed)] == [b"3", b"5", b"2"]
