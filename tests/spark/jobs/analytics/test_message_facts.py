"""What rows say about messages, from a handful of them."""

import pytest

from streamfrom.engine.messaging.table import message_ids
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.groups import HELD_NS
from streamfrom.spark.jobs.analytics.message_facts import (
    ID_EPOCH_NS,
    ID_STEP_NS,
    Told,
    acked_facts,
    waiting_facts,
)
from streamfrom.spark.jobs.reading import SHARD


pytestmark = pytest.mark.spark

S = 10**9
NOW = 1_800_000_000 * S
ROW = f"{SHARD} string, id string, priority bigint, epoch bigint, time_next bigint, time_acked bigint"


def acked(spark, rows, told, extra="tenant string, made bigint, due bigint, got bigint"):
    frame = spark.createDataFrame(
        [("-80", "a", 0, epoch, None, ack, *more) for epoch, ack, *more in rows],
        f"{ROW}, {extra}",
    )
    return acked_facts(frame, told).collect()


def test_delays_are_from_the_columns_that_tell(spark):
    told = Told(tenant="tenant", created="made", due="due", delivered="got")
    rows = [
        (3, NOW + 9 * S, "acme", NOW, NOW + 2 * S, NOW + 3 * S),
        (1, NOW, None, NOW + S, None, None),
        (None, NOW, None, None, None, None),
    ]
    first, early, bare = acked(spark, rows, told)
    assert (first.tenant, first.sends, first.retries) == ("acme", 3, 2)
    assert (first.to_ack_ns, first.lag_ns, first.is_skewed) == (9 * S, S, False)
    assert (early.to_ack_ns, early.is_skewed) == (-S, True)
    assert (bare.sends, bare.retries, bare.to_ack_ns, bare.lag_ns) == (0, 0, None, None)
    assert bare.is_skewed is False


def test_without_a_column_for_the_delivery_the_lag_is_that_of_acks_after_one_send(spark):
    rows = [(sends, NOW + 5 * S, None, NOW, None, None) for sends in (0, 1, 2)]
    facts = acked(spark, rows, Told(created="made"))
    assert [row.lag_ns for row in facts] == [None, 5 * S, None]


def test_datetimes_and_other_units_are_read_and_nonsense_is_unknown(spark):
    rows = [
        (1, NOW, "2027-01-15 07:59:58.5", NOW // S - 4),
        (1, NOW, "0000-00-00 00:00:00", 0),
        (1, NOW, None, 2**62),
    ]
    extra = "made string, got bigint"
    texts = acked(spark, rows, Told(created="made"), extra)
    assert [row.to_ack_ns for row in texts] == [int(1.5 * S), None, None]
    seconds = acked(spark, rows, Told(created="got", unit="s"), extra)
    assert [row.to_ack_ns for row in seconds] == [4 * S, None, None]


def test_the_time_of_an_id_is_computed_and_ids_of_others_have_none(spark):
    assert (message_ids.EPOCH_NS, message_ids.STEP_NS) == (ID_EPOCH_NS, ID_STEP_NS)
    made = message_ids.first_id(NOW) + 3 * message_ids.COUNTS + 7
    rows = [("-80", ident, 1, None, NOW + 5 * S) for ident in (made, 7, 1 << 60)]
    schema = "shard string, id bigint, epoch int, time_next bigint, time_acked bigint"
    frame = spark.createDataFrame(rows, schema.replace("shard", SHARD))
    found = {
        row.created_ns: row.to_ack_ns
        for row in acked_facts(frame, Told(created="id")).collect()
    }
    assert found == {NOW: 5 * S, None: None}


def test_what_waits_has_a_state_and_an_age_by_its_own_servers_clock(spark):
    rows = [
        ("-80", "new", None, 0, 0, None, NOW - 7 * S),
        ("-80", "null", 1, 0, None, None, None),
        ("-80", "late", 1, 2, NOW - 3 * S, None, NOW - 60 * S),
        ("-80", "sent", 1, 2, NOW + 3 * S, None, None),
        ("-80", "later", 1, 0, NOW + 3 * S, None, NOW + S),
        ("-80", "parked", 1, 3, PARKED_NS, None, None),
        ("-80", "blocked", 1, 0, HELD_NS, None, None),
        ("80-", "ahead", 1, 0, NOW + 3 * S, None, None),
    ]
    frame = spark.createDataFrame(rows, f"{ROW}, made bigint")
    clocks = {"-80": NOW, "80-": NOW + 10 * S}
    facts = {
        row.id: row for row in waiting_facts(frame, Told(created="made"), clocks).collect()
    }
    assert {name: row.state for name, row in facts.items()} == {
        "new": "ready", "null": "ready", "late": "ready again", "sent": "in_flight", "later": "scheduled",
        "parked": "parked", "blocked": "blocked", "ahead": "ready",
    }  # fmt: skip
    assert {name: row.overdue_ns for name, row in facts.items()} == {
        "new": 7 * S, "null": None, "late": 3 * S, "sent": None, "later": None, "parked": None,
        "blocked": None, "ahead": 7 * S,
    }  # fmt: skip
    assert facts["late"].age_ns == 60 * S
    assert [name for name, row in facts.items() if row.is_skewed] == ["later"]


def test_the_first_layout_has_no_priority_and_ids_may_be_binary(spark):
    frame = spark.createDataFrame(
        [("-", bytearray(b"\xff\x01"), 1, None)],
        f"{SHARD} string, id binary, epoch bigint, time_next bigint",
    )
    row = waiting_facts(frame, Told(), {"-": NOW}).collect()[0]
    assert (row.id, row.priority, row.tenant) == ("FF01", 0, None)
