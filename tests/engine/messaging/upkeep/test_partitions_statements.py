"""What is asked of a server about partitions, in what order, and what its refusals mean."""

import pytest

from streamfrom.engine.errors import PartitionsChanging, StoreError
from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreAnswer
from streamfrom.engine.messaging.table.message_ids import first_id
from streamfrom.engine.messaging.upkeep.partitions import (
    SECOND_NS,
    SPANS,
    Outcome,
    Partitions,
    RowsLeft,
    census,
    drop_partition,
    make_partitions,
)
from tests.engine.messaging.conversations import lenient
from tests.sim.memory_store import loaded, raw_table


DAY = SPANS["DAY"]
START_NS = DAY.floor_ns(1_800_000_000 * SECOND_NS)
TIMED = tuple(DAY.partition(START_NS + n * DAY.length_ns) for n in range(3))
TABLE = loaded(raw_table("msg"))
DROP = b"ALTER TABLE `msg` DROP PARTITION `p20270115`"


def listed(*names, until_ns=START_NS):
    rows = [
        (name.encode(), b"RANGE", b"`id`", b"%d" % first_id(until_ns + (n + 1) * DAY.length_ns))
        for n, name in enumerate(names)
    ]
    rows.append((b"prest", b"RANGE", b"`id`", b"MAXVALUE"))
    return StoreAnswer([(row, b"") for row in rows])


def test_a_census_counts_what_is_left_in_old_partitions_by_an_index():
    now_ns = TIMED[1].until_ns + TABLE.properties.purge_after_ns
    counts = StoreAnswer([((b"7", b"3", b"0", b"0", b"2"), b"")])
    found, (_, asked) = lenient(
        census(TABLE, now_ns), listed("p20270115", "p20270116", "p20270117"), counts
    )
    assert found.partitions == Partitions(DAY, TIMED, "prest")
    assert found.left == {"p20270115": RowsLeft(3, 0), "p20270116": RowsLeft(0, 2)}
    assert found.rest_rows == 7
    assert asked.sql.count(b"COUNT(*)") == 5
    assert (
        b"FROM `msg` PARTITION (`p20270116`) FORCE INDEX (`poller_idx`)"
        b" WHERE time_acked >= %d LIMIT 1000" % TIMED[1].until_ns
    ) in asked.sql


def test_a_definition_that_a_lock_hides_is_no_other_partitioning():
    with pytest.raises(PartitionsChanging, match="a lock hides"):
        lenient(census(TABLE, START_NS), StoreAnswer([], has_skipped=True))


def test_a_partition_is_dropped_behind_a_lock_and_a_check():
    outcome, sent = lenient(drop_partition(TABLE, "p20270115", 99, 0.1))
    assert outcome is Outcome.DONE
    limits, lock, unacked, young, drop = sent
    assert b"lock_wait_timeout = 1" in limits.sql
    assert (lock.sql, lock.patience_s) == (b"LOCK TABLES `msg` WRITE", 0.1)
    assert unacked.sql == (
        b"SELECT 1 FROM `msg` PARTITION (`p20270115`) FORCE INDEX (`poller_idx`)"
        b" WHERE time_acked IS NULL LIMIT 1 FOR UPDATE NOWAIT"
    )
    assert unacked.sql.replace(b"IS NULL", b">= 99") == young.sql
    assert unacked.patience_s == young.patience_s == 0.1
    assert (drop.sql, drop.patience_s) == (DROP, None)


@pytest.mark.parametrize("at", [2, 3])
def test_a_row_that_was_revived_keeps_its_partition(at):
    outcome, sent = lenient(
        drop_partition(TABLE, "p20270115", 99, 0.1),
        *[StoreAnswer()] * at,
        StoreAnswer([((b"1",), b"")]),
    )
    assert outcome is Outcome.KEPT
    assert all(b"DROP" not in query.sql for query in sent)


@pytest.mark.parametrize(
    ("at", "code", "expected"),
    [
        (1, 1205, Outcome.HELD),
        (1, 1317, Outcome.HELD),
        (2, 3572, Outcome.HELD),
        (2, 1735, Outcome.DONE),
        (4, 1507, Outcome.DONE),
        (4, 1205, Outcome.HELD),
    ],
)
def test_what_a_refusal_means(at, code, expected):
    answers = [*[StoreAnswer()] * at, ServerRefused(code, "no")]
    outcome, sent = lenient(drop_partition(TABLE, "p20270115", 99, 0.1), *answers)
    assert outcome is expected
    assert len(sent) == at + 1


def test_another_refusal_is_told_in_the_servers_words():
    denied = ServerRefused(1142, "DROP command denied")
    with pytest.raises(StoreError, match="DROP command denied"):
        lenient(drop_partition(TABLE, "p20270115", 99, 0.1), *[StoreAnswer()] * 4, denied)


def test_the_last_partition_is_split():
    outcome, sent = lenient(make_partitions(TABLE, TIMED[1:], "prest", 0.2))
    assert outcome is Outcome.DONE
    assert [query.patience_s for query in sent] == [None, 0.2, 0.2, None]
    assert sent[2].sql == b"SELECT 1 FROM `msg` PARTITION (`prest`) LIMIT 1 FOR UPDATE NOWAIT"
    assert sent[3].sql == (
        b"ALTER TABLE `msg` REORGANIZE PARTITION `prest` INTO"
        b" (PARTITION `p20270116` VALUES LESS THAN (%d),"
        b" PARTITION `p20270117` VALUES LESS THAN (%d), PARTITION `prest` VALUES LESS THAN MAXVALUE)"
        % (first_id(TIMED[1].until_ns), first_id(TIMED[2].until_ns))
    )
