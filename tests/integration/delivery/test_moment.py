"""The moment: messages of the future, to the second and never early."""

import time

import pytest

from tests.fixtures.streams import (
    LATE_S,
    Consume,
    run,
)
from tests.integration.conftest import CreateTable, SharedCluster
from tests.integration.delivery.conftest import OpenQueue
from tests.integration.delivery.producing import insert


pytestmark = pytest.mark.db

SECOND_NS = 10**9


def test_a_future_row_comes_at_its_moment_and_never_early(
    queue: OpenQueue, keyspace: str
) -> None:
    producer, stream = queue(keyspace)
    moments = {}
    for ident, ahead_s in ((1, 0.9), (4, 0.3), (2, 0.6)):
        moments[ident] = time.time_ns() + round(ahead_s * SECOND_NS)
        insert(producer, ident, time_next=moments[ident])
    while moments:
        ident = stream.next(LATE_S + 1)[0]
        assert 0 <= time.time_ns() - moments.pop(ident) <= LATE_S * SECOND_NS


def test_a_future_row_written_before_the_stream_opened_keeps_its_moment(
    cluster: SharedCluster, create: CreateTable, consume: Consume, keyspace: str
) -> None:
    create(keyspace)
    producer = cluster.proxy.connect(database=keyspace, autocommit=True)
    moment_ns = time.time_ns() + SECOND_NS // 2
    insert(producer, 1, time_next=moment_ns)
    stream = consume(cluster.proxy, database=keyspace)
    stream.next(0.5 + LATE_S)
    assert moment_ns <= time.time_ns() <= moment_ns + LATE_S * SECOND_NS


def test_time_functions_mean_nanoseconds(queue: OpenQueue, keyspace: str) -> None:
    producer, stream = queue(keyspace)
    before_ns = time.time_ns()
    run(producer, "INSERT INTO my_message (id, time_next) VALUES (1, NOW())")
    assert stream.next(LATE_S)[0] == 1
    run(producer, "INSERT INTO my_message (id, time_next) VALUES (4, UNIX_TIMESTAMP() + 1)")
    stream.nothing(max(0.0, before_ns / SECOND_NS // 1 + 0.9 - time.time()))
    assert stream.next(1 + LATE_S)[0] == 4
    assert time.time_ns() >= before_ns // SECOND_NS * SECOND_NS + SECOND_NS


def test_time_next_null_means_now(
    cluster: SharedCluster, create: CreateTable, consume: Consume, keyspace: str
) -> None:
    create(keyspace, time_next="time_next BIGINT")
    producer = cluster.proxy.connect(database=keyspace, autocommit=True)
    insert(producer, 1)
    insert(producer, 4, time_next=None)
    stream = consume(cluster.proxy, database=keyspace)
    assert sorted(stream.ids(2, LATE_S)) == [1, 4]
    insert(producer, 2)
    insert(producer, 6, time_next=None)
    assert sorted(stream.ids(2, LATE_S)) == [2, 6]


def test_a_moment_before_1970_means_now(
    cluster: SharedCluster, create: CreateTable, consume: Consume, keyspace: str
) -> None:
    create(keyspace)
    producer = cluster.proxy.connect(database=keyspace, autocommit=True)
    run(producer, "INSERT INTO my_message (id, time_next) VALUES (1, -5), (4, 0), (2, 3)")
    stream = consume(cluster.proxy, database=keyspace)
    assert sorted(stream.ids(3, LATE_S)) == [1, 2, 4]
    run(producer, "INSERT INTO my_message (id, time_next) VALUES (6, -9)")
    assert stream.ids(1, LATE_S) == [6]


def test_rescheduling_is_honoured_at_once(queue: OpenQueue, keyspace: str) -> None:
    producer, stream = queue(keyspace)
    insert(producer, 1, time_next=time.time_ns() + 3600 * SECOND_NS)
    insert(producer, 2)
    assert stream.next(LATE_S)[0] == 2
    where = "WHERE id = 1 AND time_acked IS NULL"
    assert run(producer, f"UPDATE my_message SET time_next = 0 {where}") == 1
    assert stream.next(LATE_S)[0] == 1
    # A nack of what was just sent: once more, now.
    where = "WHERE id IN (1, 2) AND time_acked IS NULL"
    assert run(producer, f"UPDATE my_message SET time_next = 0, epoch = 0 {where}") == 2
    assert sorted(stream.ids(2, LATE_S)) == [1, 2]


def test_a_row_put_off_does_not_come_at_its_old_moment(queue: OpenQueue, keyspace: str) -> None:
    producer, stream = queue(keyspace)
    later = time.time_ns() + 3600 * SECOND_NS
    insert(producer, 1, time_next=time.time_ns() + SECOND_NS // 2)
    run(producer, f"UPDATE my_message SET time_next = {later} WHERE id = 1")
    stream.nothing(0.9)


def test_a_revived_row_is_sent_again(queue: OpenQueue, keyspace: str) -> None:
    producer, stream = queue(keyspace)
    insert(producer, 1)
    stream.next(LATE_S)
    assert run(producer, "UPDATE my_message SET time_acked = NOW() WHERE id = 1") == 1
    run(producer, "UPDATE my_message SET time_acked = NULL, time_next = 0 WHERE id = 1")
    assert stream.next(LATE_S)[0] == 1
