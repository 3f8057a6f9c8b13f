"""Which partitions are to be made, and which may go: rules alone, with the time as an argument."""

import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.errors import PartitionsChanging
from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreAnswer
from streamfrom.engine.messaging.table.message_ids import EPOCH_NS, STEP_NS, first_id
from streamfrom.engine.messaging.upkeep.partitions import (
    SECOND_NS,
    SPANS,
    DropPartition,
    MakePartitions,
    Outcome,
    Partition,
    PartitionCensus,
    Partitions,
    RawPartition,
    RowsLeft,
    TakeCensus,
    held_back,
    late,
    partition_by,
    read_partitions,
    rest_held_back,
)
from tests.engine.messaging.conversations import at, lenient
from tests.sim.memory_store import loaded, raw_table


HOUR, DAY = SPANS["HOUR"], SPANS["DAY"]
NOW_NS = 1_800_000_000 * SECOND_NS  # 2027-01-15 08:00:00
MOMENTS = st.integers(EPOCH_NS, 4_000_000_000 * SECOND_NS)
UNITS = st.sampled_from(sorted(SPANS))


def raw(partitions, rest="prest", method="RANGE", expression="`id`"):
    rows = [
        RawPartition(name, method, expression, str(first_id(until)))
        for name, until in partitions
    ]
    return [*rows, RawPartition(rest, method, expression, "MAXVALUE")]


def made(span, start_ns, count):
    return tuple(span.partition(start_ns + n * span.length_ns) for n in range(count))


def test_a_partition_is_named_after_its_beginning():
    assert HOUR.partition(NOW_NS) == Partition("p2027011508", NOW_NS + 3600 * SECOND_NS)
    assert DAY.partition(DAY.floor_ns(NOW_NS)) == ("p20270115", 1_800_057_600 * SECOND_NS)


def test_the_clause_of_a_new_queue():
    assert partition_by(DAY, NOW_NS).startswith(
        b"PARTITION BY RANGE (`id`) (PARTITION `p20270115` VALUES LESS THAN (%d), "
        % first_id(1_800_057_600 * SECOND_NS)
    )
    assert partition_by(DAY, NOW_NS).endswith(b"PARTITION `prest` VALUES LESS THAN MAXVALUE)")


@given(UNITS, MOMENTS)
def test_none_are_made_while_there_are_enough_for_a_day(unit, now_ns):
    span = SPANS[unit]
    found = Partitions(span, made(span, span.floor_ns(now_ns), span.least + 1), "prest")
    assert found.missing(now_ns) == ()
    assert found.timed[-1].until_ns - now_ns > 86_400 * SECOND_NS
    later_ns = now_ns + span.length_ns
    assert len(found.missing(later_ns)) == span.ahead - span.least + 1


@given(UNITS, MOMENTS, st.integers(1, 10**6))
def test_rows_are_left_to_their_partitions(unit, now_ns, purge_after_s):
    """A row is deleted by itself only if its partition should have been dropped long before."""
    span, purge_after_ns = SPANS[unit], purge_after_s * SECOND_NS
    found = Partitions(span, made(span, span.floor_ns(now_ns), 2), "prest")
    acked_first_ns = span.floor_ns(now_ns)
    dropped_ns = found.timed[0].until_ns + purge_after_ns
    assert found.rows_cutoff_ns(dropped_ns, purge_after_ns) <= acked_first_ns - purge_after_ns


@pytest.mark.parametrize(
    "rows",
    [
        [],
        raw([]),
        raw(made(HOUR, NOW_NS, 2))[:-1],
        raw(made(HOUR, NOW_NS, 2), method="LIST"),
        raw(made(HOUR, NOW_NS, 2), method="RANGE COLUMNS"),
        raw(made(HOUR, NOW_NS, 2), expression="`priority`"),
        raw([*made(HOUR, NOW_NS, 2), Partition("p3", NOW_NS + 9 * HOUR.length_ns)]),
        raw([*made(DAY, DAY.floor_ns(NOW_NS), 1), *made(HOUR, NOW_NS + DAY.length_ns, 1)]),
        raw([Partition("p2027011508", NOW_NS)]),
        raw([Partition("p2027011508", NOW_NS + HOUR.length_ns + STEP_NS)]),
        [
            RawPartition(
                "p2027011508", "RANGE", "`id`", str(first_id(NOW_NS + HOUR.length_ns) + 1)
            ),
            *raw([]),
        ],
        raw([Partition("p2027011508", 10**30)]),
    ],
)
def test_other_ways_of_partitioning(rows):
    assert read_partitions(rows, "id") is None


def test_what_holds_a_partition_back_in_words():
    assert held_back(RowsLeft(0, 0)) is None
    assert held_back(RowsLeft(1, 0)) == "1 message not acknowledged"
    assert held_back(RowsLeft(1000, 2)) == (
        "1000 or more messages not acknowledged and"
        " 2 messages acknowledged less than vt_purge_after ago"
    )
    assert rest_held_back(0) is None
    assert (rest_held_back(1) or "").startswith("1 message with ids beyond all partitions, ")


def test_what_is_told_is_late_by_the_time_of_a_partition():
    found = Partitions(HOUR, made(HOUR, NOW_NS, 3), "prest")
    old_ns = found.timed[0].until_ns + 100
    census = PartitionCensus(found, {found.timed[0].name: RowsLeft(3, 0)}, 0)
    assert late(census, old_ns + HOUR.length_ns - 1, 100) == {}
    assert late(census, old_ns + HOUR.length_ns, 100) == {
        "p2027011508": "3 messages not acknowledged"
    }
    assert "prest" in late(PartitionCensus(found, {}, 1), NOW_NS, 100)
    enough = Partitions(HOUR, made(HOUR, NOW_NS, HOUR.ahead), "prest")
    assert late(PartitionCensus(enough, {}, 1), NOW_NS, 100) == {}


def test_how_many_partitions_a_setting_makes():
    assert HOUR.count(86_400 * SECOND_NS) == 24 + 1 + 36 + 1
    assert DAY.count(1) == 1 + 1 + 7 + 1


START_NS = DAY.floor_ns(1_800_000_000 * SECOND_NS)
TIMED = tuple(DAY.partition(START_NS + n * DAY.length_ns) for n in range(3))
TABLE = loaded(raw_table("msg"))
# Of rows the last column but two.
EXPLAINED = StoreAnswer([((*[None] * 9, b"7", None, None), b"")])
DROPPING = DropPartition("p20270115", 99, 0.1)
DROP = b"ALTER TABLE `msg` DROP PARTITION `p20270115`"


def listed(*names, until_ns=START_NS):
    rows = [
        (
            name.encode(),
            b"RANGE",
            b"`id`",
            b"%d" % first_id(until_ns + (n + 1) * DAY.length_ns),
        )
        for n, name in enumerate(names)
    ]
    rows.append((b"prest", b"RANGE", b"`id`", b"MAXVALUE"))
    return StoreAnswer([(row, b"") for row in rows])


def test_a_census_counts_what_is_left_in_old_partitions_by_an_index():
    now_ns = TIMED[1].until_ns + TABLE.properties.purge_after_ns
    counts = StoreAnswer([((b"7", b"3", b"0", b"0", b"2"), b"")])
    found, (_, asked) = lenient(
        TakeCensus().talk(TABLE, at(now_ns)),
        listed("p20270115", "p20270116", "p20270117"),
        counts,
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
        lenient(TakeCensus().talk(TABLE, at(START_NS)), StoreAnswer([], has_skipped=True))


def test_a_partition_is_dropped_behind_a_lock_and_a_check():
    (outcome, rows), (_, *sent) = lenient(DROPPING.talk(TABLE, at()), EXPLAINED)
    assert (outcome, rows) == (Outcome.DONE, 7)
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


@pytest.mark.parametrize("step", [2, 3])
def test_a_row_that_was_revived_keeps_its_partition(step):
    (outcome, _), sent = lenient(
        DROPPING.talk(TABLE, at()),
        EXPLAINED,
        *[StoreAnswer()] * step,
        StoreAnswer([((b"1",), b"")]),
    )
    assert outcome is Outcome.KEPT
    assert all(b"DROP" not in query.sql for query in sent)


@pytest.mark.parametrize(
    ("step", "code", "expected"),
    [
        (1, 1205, Outcome.HELD),
        (1, 1317, Outcome.HELD),
        (2, 3572, Outcome.HELD),
        (2, 1735, Outcome.DONE),
        (4, 1507, Outcome.DONE),
        (4, 1205, Outcome.HELD),
    ],
)
def test_what_a_refusal_means(step, code, expected):
    answers = [EXPLAINED, *[StoreAnswer()] * step, ServerRefused(code, "no")]
    (outcome, _), sent = lenient(DROPPING.talk(TABLE, at()), *answers)
    assert outcome is expected
    assert len(sent) == step + 2


def test_another_refusal_is_told_in_the_servers_words():
    denied = ServerRefused(1142, "DROP command denied")
    with pytest.raises(ServerRefused, match="DROP command denied"):
        lenient(DROPPING.talk(TABLE, at()), EXPLAINED, *[StoreAnswer()] * 4, denied)


def test_the_last_partition_is_split():
    outcome, sent = lenient(MakePartitions(TIMED[1:], "prest", 0.2).talk(TABLE, at()))
    assert outcome is Outcome.DONE
    assert [query.patience_s for query in sent] == [None, 0.2, 0.2, None]
    assert sent[2].sql == b"SELECT 1 FROM `msg` PARTITION (`prest`) LIMIT 1 FOR UPDATE NOWAIT"
    assert sent[3].sql == (
        b"ALTER TABLE `msg` REORGANIZE PARTITION `prest` INTO"
        b" (PARTITION `p20270116` VALUES LESS THAN (%d),"
        b" PARTITION `p20270117` VALUES LESS THAN (%d), PARTITION `prest` VALUES LESS THAN MAXVALUE)"
        % (first_id(TIMED[1].until_ns), first_id(TIMED[2].until_ns))
    )
