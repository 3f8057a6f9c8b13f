"""When a message is sent: with its commit, at its moment, again after its wait, and never before."""

import time

import mysql.connector
import pytest

from tests.fixtures.streams import refuses, rows, run, value
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert, insert_all


QUIET_S = 0.4


def test_a_row_that_is_inserted_as_acknowledged_is_not_sent(queue: Queue) -> None:
    producer, stream = queue.create(), queue.stream()
    sql = "INSERT INTO my_message (id, time_acked) VALUES (1, 1800000000000000005), (4, 1800000000000000005)"
    run(producer, sql)
    stream.nothing(QUIET_S)


def test_a_row_written_past_the_proxy_is_found_by_the_poller(queue: Queue) -> None:
    queue.create(poller_interval=0.3)
    stream = queue.stream()
    queue.cluster.direct("INSERT INTO my_message (id) VALUES (1)", keyspace=queue.keyspace)
    assert stream.next()[0] == 1


def test_rows_of_a_transaction_come_with_its_commit(queue: Queue) -> None:
    quick, slow = queue.create(), queue.connect(autocommit=False)
    stream = queue.stream()
    insert_all(slow, (1, 4))
    insert(quick, 2)
    assert stream.next()[0] == 2
    stream.nothing(QUIET_S)
    slow.commit()
    assert sorted(stream.ids(2)) == [1, 4]


SECOND_NS = 10**9


def test_a_future_row_comes_at_its_moment_and_never_early(queue: Queue) -> None:
    producer, stream = queue.create(), queue.stream()
    moments = {}
    for ident, ahead_s in ((1, 0.9), (4, 0.3), (2, 0.6)):
        moments[ident] = time.time_ns() + round(ahead_s * SECOND_NS)
        insert(producer, ident, time_next=moments[ident])
    while moments:
        ident = stream.next()[0]
        assert time.time_ns() - moments.pop(ident) >= 0


def test_null_and_a_moment_before_1970_mean_now(queue: Queue) -> None:
    producer = queue.create(time_next="time_next BIGINT")
    insert(producer, 1)
    insert(producer, 4, time_next=None)
    insert(producer, 3, time_next=-5)
    stream = queue.stream()
    assert sorted(stream.ids(3)) == [1, 3, 4]
    insert(producer, 2)
    insert(producer, 6, time_next=None)
    assert sorted(stream.ids(2)) == [2, 6]


def test_rescheduling_is_honoured_at_once(queue: Queue) -> None:
    producer, stream = queue.create(ack_wait=600), queue.stream()
    insert(producer, 1, time_next=time.time_ns() + 3600 * SECOND_NS)
    insert(producer, 2)
    assert stream.next()[0] == 2
    where = "WHERE id = 1 AND time_acked IS NULL"
    assert run(producer, f"UPDATE my_message SET time_next = 0 {where}") == 1
    assert stream.next()[0] == 1
    # A nack of what was just sent: once more, now.
    where = "WHERE id IN (1, 2) AND time_acked IS NULL"
    assert run(producer, f"UPDATE my_message SET time_next = 0, epoch = 0 {where}") == 2
    assert sorted(stream.ids(2)) == [1, 2]
    # So are an upsert and a REPLACE of what was sent for the first time.
    for ident, sql in (
        (3, "INSERT INTO my_message (id) VALUES (3) ON DUPLICATE KEY UPDATE time_next = 0"),
        (5, "REPLACE INTO my_message VALUES (5, 50, 0, 0, NULL, 3, NULL)"),
    ):
        for _ in range(2):
            run(producer, sql)
            assert stream.next()[0] == ident, sql


def test_epoch_grows_and_time_next_lies_inside_the_backoff_window(queue: Queue) -> None:
    wait_s = 0.5
    queue.create(ack_wait=wait_s)
    stream = queue.stream("STREAM id, epoch FROM my_message")
    producer = queue.connect()
    due_ns = {0: time.time_ns()}  # before which it may not be claimed, by epoch
    insert(producer, 1)
    seen = 0
    while seen < 3:
        _, epoch = stream.next()
        after_ns = time.time_ns()
        asked = "SELECT epoch, time_next FROM my_message WHERE id = 1"
        ((now_epoch, now_due_ns),) = rows(producer, asked)
        # A busy machine may have let it be sent once more by now.
        if now_epoch == epoch + 1:
            base_ns = round(wait_s * 2**epoch * SECOND_NS)
            assert due_ns.get(epoch, 0) <= after_ns
            assert due_ns.get(epoch, 0) + base_ns <= now_due_ns <= after_ns + base_ns * 4 // 3
            seen += 1
        due_ns[now_epoch] = now_due_ns


def test_an_epoch_that_cannot_grow_stops_nobody(plain: Queue) -> None:
    producer, stream = plain.create(ack_wait=60), plain.stream()
    largest = 2**63 - 1
    run(producer, f"INSERT INTO my_message (id, epoch) VALUES (1, {largest}), (2, 0)")
    assert {stream.next()[0] for _ in range(2)} == {1, 2}
    assert value(producer, "SELECT epoch FROM my_message WHERE id = 1") == 2**31 - 1


LATER = 9 * 10**18


def test_nothing_is_scheduled_for_later_by_text_or_prepared(queue: Queue) -> None:
    client = queue.create()
    run(client, "ALTER QUEUE my_message SET (delayed = off)")
    (_, definition) = rows(client, "SHOW CREATE TABLE my_message")[0]
    assert "vt_delayed=off" in definition
    for sql in (
        f"INSERT INTO my_message (id, time_next) VALUES (1, {LATER})",
        "INSERT INTO my_message (id, time_next) VALUES (1, NOW() + INTERVAL 1 HOUR)",
        f"INSERT INTO my_message SET id = 1, time_next = {LATER}",
        "INSERT INTO my_message (id, time_next) SELECT 1, 0",
        f"UPDATE my_message SET time_next = {LATER} WHERE id = 1",
    ):
        refuses(client, sql, 1290, "vt_delayed of message table 'my_message' is off")
    assert value(client, "SELECT COUNT(*) FROM my_message") == 0
    with queue.proxy.connector(queue.keyspace) as connection:
        cursor = connection.cursor(prepared=True)
        insert = "INSERT INTO my_message (id, time_next) VALUES (?, ?)"
        with pytest.raises(mysql.connector.Error) as failed:
            cursor.execute(insert, (1, LATER))
        assert failed.value.errno == 1290
        cursor.execute(insert, (1, 0))
        with pytest.raises(mysql.connector.Error, match="is later than now"):
            cursor.execute("UPDATE my_message SET time_next = ? WHERE id = ?", (LATER, 1))
        cursor.execute("UPDATE my_message SET time_next = ? WHERE id = ?", (0, 1))

    stream = queue.stream("STREAM id FROM my_message")
    assert stream.take(1) == [(1,)]
    run(client, "UPDATE my_message SET time_next = time_next + INTERVAL 1 MINUTE WHERE id = 1")
    run(client, "UPDATE my_message SET time_next = 0 WHERE id = 1")
    assert stream.take(1) == [(1,)]
    assert run(client, "UPDATE my_message SET time_acked = NOW() WHERE id = 1") == 1

    run(client, "ALTER QUEUE my_message SET (delayed = DEFAULT)")
    run(client, f"INSERT INTO my_message (id, time_next) VALUES (2, {LATER})")
