"""What rows say about messages, from a handful of them."""

from decimal import Decimal

import pytest

from streamfrom.engine.messaging.table import message_ids
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.groups import HELD_NS
from streamfrom.spark.jobs.analytics.message_facts import (
    ID_EPOCH_NS,
    ID_STEP_NS,
    acked_facts,
    waiting_facts,
)
from streamfrom.spark.jobs.reading import SHARD


pytestmark = pytest.mark.spark

S = 10**9
NOW = 1_800_000_000 * S
ROW = f"{SHARD} string, id string, priority bigint, epoch bigint, time_next bigint, time_acked bigint"


def acked(spark, rows, created="made", extra="tenant string, made bigint"):
    frame = spark.createDataFrame(
        [("-80", "a", 0, epoch, None, ack, *more) for epoch, ack, *more in rows],
        f"{ROW}, {extra}",
    )
    return acked_facts(frame, "tenant" if "tenant" in extra else None, created).collect()


def test_delays_are_from_the_column_that_tells(spark):
    rows = [
        (3, NOW + 9 * S, "acme", NOW),
        (1, NOW, None, NOW + S),
        (None, NOW, None, None),
    ]
    first, early, bare = acked(spark, rows)
    assert (first.tenant, first.sends, first.retries) == ("acme", 3, 2)
    assert (first.to_ack_ns, first.is_skewed) == (9 * S, False)
    assert (early.to_ack_ns, early.is_skewed) == (-S, True)
    assert (bare.sends, bare.retries, bare.to_ack_ns) == (0, 0, None)
    assert bare.is_skewed is False


def test_datetimes_and_numbers_of_any_unit_are_read_and_nonsense_is_unknown(spark):
    texts = ["2027-01-15 07:59:58.5", "0000-00-00 00:00:00", None]
    found = acked(spark, [(1, NOW, text) for text in texts], extra="made string")
    assert [row.to_ack_ns for row in found] == [int(1.5 * S), None, None]
    numbers = [(NOW - 4 * S) // unit for unit in (1, 10**3, 10**6, 10**9)]
    for kind in ("bigint", "double", "decimal(20,0)"):
        values = [
            Decimal(n) if "dec" in kind else float(n) if kind == "double" else n
            for n in numbers
        ]
        rows = [(1, NOW, value) for value in (*values, values[0] * 0, -values[0], None)]
        found = acked(spark, rows, extra=f"made {kind}")
        assert [row.to_ack_ns for row in found] == [4 * S] * 4 + [None] * 3


def test_the_time_of_an_id_is_computed_and_ids_of_others_have_none(spark):
    assert (message_ids.EPOCH_NS, message_ids.STEP_NS) == (ID_EPOCH_NS, ID_STEP_NS)
    made = message_ids.first_id(NOW) + 3 * message_ids.COUNTS + 7
    rows = [("-80", ident, 1, None, NOW + 5 * S) for ident in (made, 7, 1 << 60)]
    schema = "shard string, id bigint, epoch int, time_next bigint, time_acked bigint"
    frame = spark.createDataFrame(rows, schema.replace("shard", SHARD))
    found = {row.created_ns: row.to_ack_ns for row in acked_facts(frame, None, "id").collect()}
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
    facts = {row.id: row for row in waiting_facts(frame, None, "made", clocks).collect()}
    assert {name: row.state for name, row in facts.items()} == {
        "new": "ready", "null": "ready", "late": "ready again", "sent": "in_flight", "later": "scheduled",
        "parked": "parked", "blocked": "blocked", "ahead": "ready",
    }  # fmt: skip
    assert {name: row.overdue_ns for name, row in facts.items()} == {
        "new": 7 * S, "null": None, "late": 3 * S, "sent": None, "later": None, "parked": None,
        "blocked": None, "ahead": 7 * S,
    }  # fmt: skip
    assert facts["late"].age_ns == 60 * S


def test_the_first_layout_has_no_priority_and_ids_may_be_binary(spark):
    frame = spark.createDataFrame(
        [("-", bytearray(b"\xff\x01"), 1, None)],
        f"{SHARD} string, id binary, epoch bigint, time_next bigint",
    )
    row = waiting_facts(frame, None, None, {"-": NOW}).collect()[0]
    assert (row.id, row.priority, row.tenant) == ("FF01", 0, None)
