"""What is not acknowledged comes again, later each time."""

import time

import pytest

from tests.fixtures.streams import (
    Consume,
    Consumer,
    eventually,
    rows,
    run,
    value,
)
from tests.integration.conftest import CreateTable, SharedCluster
from tests.integration.delivery.producing import insert, insert_all


pytestmark = pytest.mark.db

SECOND_NS = 10**9
# A busy machine delays a timer; an early row is never excused.
LATE_S = 1.0


def total(streams: list[Consumer]) -> int:
    return sum(len(stream.rows) for stream in streams)


def test_epoch_grows_and_time_next_lies_inside_the_backoff_window(
    cluster: SharedCluster, create: CreateTable, consume: Consume, keyspace: str
) -> None:
    wait_s = 0.5
    create(keyspace, ack_wait=wait_s)
    stream = consume(cluster.proxy, database=keyspace)
    producer = cluster.proxy.connect(database=keyspace, autocommit=True)
    insert(producer, 1)
    due_ns = 0
    for epoch in range(3):
        before_ns = time.time_ns()
        stream.next(wait_s * 2**epoch * 4 / 3 + LATE_S)
        after_ns = time.time_ns()
        assert after_ns >= due_ns
        ((now_epoch, due_ns),) = rows(
            producer, "SELECT epoch, time_next FROM my_message WHERE id = 1"
        )
        base_ns = round(wait_s * 2**epoch * SECOND_NS)
        assert now_epoch == epoch + 1
        # Counted from the claim, which is between the two: at once, or when it was due.
        assert before_ns + base_ns - LATE_S * SECOND_NS <= due_ns
        assert due_ns <= after_ns + base_ns * 4 // 3


def test_the_wait_stays_between_its_bounds(
    cluster: SharedCluster, create: CreateTable, consume: Consume
) -> None:
    create("plain", ack_wait=0.2, more=",vt_min_backoff=0.4,vt_max_backoff=0.8")
    stream = consume(cluster.proxy, database="plain")
    producer = cluster.proxy.connect(database="plain", autocommit=True)
    run(producer, "INSERT INTO my_message (id, epoch) VALUES (1, 60)")
    stream.next(LATE_S)
    started = time.monotonic()
    stream.next(0.8 + LATE_S)
    assert time.monotonic() - started >= 0.5
    assert value(producer, "SELECT epoch FROM my_message") == 62


def test_only_what_is_not_acknowledged_comes_again(
    cluster: SharedCluster, create: CreateTable, consume: Consume, keyspace: str
) -> None:
    create(keyspace, ack_wait=0.5, more=",vt_max_backoff=0.5")
    producer = cluster.proxy.connect(database=keyspace, autocommit=True)
    insert_all(producer, (4, 1))
    stream = consume(cluster.proxy, database=keyspace)
    assert sorted(stream.ids(2, LATE_S)) == [1, 4]
    assert run(producer, "UPDATE my_message SET time_acked = 123 WHERE id IN (4)") == 1
    assert stream.ids(3, 3 * LATE_S) == [1, 1, 1]
    ack = "UPDATE my_message SET time_acked = 123, time_next = NULL WHERE id IN (1, 4)"
    assert run(producer, ack + " AND time_acked IS NULL") == 1
    stream.nothing(0.8)


def test_nothing_is_sent_twice_before_its_wait_is_over(
    cluster: SharedCluster, create: CreateTable, consume: Consume, keyspace: str
) -> None:
    create(keyspace, poller_interval=0.1)
    producer = cluster.proxy.connect(database=keyspace, autocommit=True)
    streams = [consume(cluster.proxy, database=keyspace) for _ in range(3)]
    insert_all(producer, range(1, 31))
    eventually(lambda: [s.poll(0) for s in streams] and total(streams) == 30)
    for stream in streams:
        stream.nothing(0.2)
    assert sorted(row[0] for s in streams for row in s.rows) == list(range(1, 31))
