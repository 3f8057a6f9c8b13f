"""Counts and percentiles of a handful of messages."""

from typing import Any

import pytest

from streamfrom.spark.jobs.analytics.measures import (
    GROUPINGS,
    attempts,
    measure,
    poison,
    waits,
    with_window,
    written,
)


pytestmark = pytest.mark.spark

S = 10**9
ACKED = (
    "shard string, tenant string, acked_ns bigint, created_ns bigint, sends bigint,"
    " retries bigint, to_ack_ns bigint, is_skewed boolean"
)
WAITING = (
    "shard string, id string, tenant string, priority bigint, sends bigint, next_ns bigint,"
    " created_ns bigint, now_ns bigint, state string, overdue_ns bigint, age_ns bigint"
)


@pytest.fixture(scope="module")
def acked(spark):
    rows: list[tuple[Any, ...]] = [
        # A hundred on one shard take 1 … 100 s, and every tenth was sent twice.
        ("-80", "a", n * S, 0, 2 if n % 10 == 0 else 1, int(n % 10 == 0), n * S, False)
        for n in range(1, 101)
    ]
    rows += [
        ("80-", None, 5 * S, 6 * S, 1, 0, -S, True),
        ("80-", None, 5 * S, None, 0, 0, None, False),
    ]
    return spark.createDataFrame(rows, ACKED)


def test_counts_add_up_and_percentiles_leave_out_what_is_not_known(acked):
    total = measure(acked, "ks.t").collect()[0]
    assert (total.acked, total.sent_once, total.retried, total.never_sent) == (102, 91, 10, 1)
    assert (total.retries, total.retries_max, total.skewed) == (10, 1, 1)
    assert total.to_ack_known == 100
    assert (total.to_ack_p50_ms, total.to_ack_p90_ms) == (50_000.0, 90_000.0)
    assert (total.to_ack_p99_ms, total.to_ack_max_ms) == (99_000.0, 100_000.0)


def test_each_grouping_computes_its_own(acked):
    frame = with_window(acked, "acked_ns", 60 * S)
    shards = measure(frame, "t", GROUPINGS["by_shard"]).collect()
    assert {row.shard: row.acked for row in shards} == {"-80": 100, "80-": 2}
    windows = measure(frame, "t", GROUPINGS["by_window"]).collect()
    assert {row.window_ns: row.acked for row in windows} == {0: 61, 60 * S: 41}
    cells = measure(frame, "t", GROUPINGS["by_window_shard"]).collect()
    assert sum(row.acked for row in cells) == 102


def test_nothing_acknowledged_is_a_row_of_zeros(acked):
    total = measure(acked.limit(0), "t").collect()[0]
    assert (total.acked, total.retries, total.to_ack_known) == (0, 0, 0)
    assert total.to_ack_p50_ms is None


def test_attempts_and_arrivals_are_counted(acked):
    counted = {row.sends: row.acked for row in attempts(acked, "t").collect()}
    assert counted == {0: 1, 1: 91, 2: 10}
    frame = acked.filter("created_ns >= 0")
    arrived = {row.window_ns: row.written for row in written(frame, frame, 5 * S).collect()}
    assert arrived == {0: 200, 5 * S: 2}


def test_what_waits_is_counted_by_state_and_the_worst_come_first(spark):
    def row(ident, sends, state, overdue_s=None, next_s=0, created=None):
        overdue = None if overdue_s is None else overdue_s * S
        return ("-", ident, None, 0, sends, next_s * S, created, 0, state, overdue, None)

    rows = [
        row("a", 7, "ready again", 1, created=5),
        row("b", 7, "ready again", 3, created=4),
        row("c", 9, "in_flight", next_s=8),
        row("d", 0, "ready", 2),
        row("e", 0, "scheduled", next_s=4),
    ]
    frame = spark.createDataFrame(rows, WAITING)
    counted = {row.state: row for row in waits(frame, "t", 7).collect()}
    assert {state: row.messages for state, row in counted.items()} == {
        "ready": 1, "ready again": 2, "in_flight": 1, "scheduled": 1,
    }  # fmt: skip
    assert counted["ready again"].overdue_max_ms == 3000.0
    assert counted["scheduled"].until_max_ms == 4000.0
    assert sum(row.suspects for row in counted.values()) == 3
    assert [row.id for row in poison(frame, "t", 7, 2).collect()] == ["c", "b"]
