"""A first delivery writes nothing: its lease is written later, or before somebody needs to see it."""

import time

import pytest

from tests.fixtures.streams import eventually, rows, run
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert_all


pytestmark = pytest.mark.db

# Nothing is written by itself for as long as a test takes.
LONG = ",vt_lease_delay=300,vt_release_after=never"
SHOWN = "SELECT epoch, IFNULL(time_next, 0) FROM my_message WHERE id = {}"


def test_an_ack_is_the_one_write_and_counts_the_send(queue: Queue) -> None:
    other = queue.create(ack_wait=600, more=LONG)
    insert_all(other, [1, 2])
    run(other, "INSERT INTO my_message (id, time_next) VALUES (3, NOW() + INTERVAL 1 DAY)")
    stream = queue.stream()
    assert sorted(stream.ids(2)) == [1, 2]
    assert rows(other, SHOWN.format(1)) == ((0, 0),)
    ack = "UPDATE my_message SET time_acked = NOW(), time_next = NULL WHERE id = {}"
    assert run(other, ack.format(1)) == 1
    assert rows(other, SHOWN.format(1)) == ((1, 0),)
    other.begin()
    by_list = "UPDATE my_message SET time_acked = 1800000000000000005 WHERE id IN (2)"
    assert run(other, by_list) == 1
    other.commit()
    assert rows(other, SHOWN.format(2)) == ((1, 0),)
    assert other.cursor().execute(ack.format(3)) == 1
    assert rows(other, SHOWN.format(3)) == ((0, 0),), "it was never sent"
    assert other.cursor().execute(ack.format(3)) == 0


def test_a_reschedule_finds_the_lease_of_its_row_written(queue: Queue) -> None:
    other = queue.create(ack_wait=600, more=LONG)
    insert_all(other, [1, 2])
    stream = queue.stream()
    assert sorted(stream.ids(2)) == [1, 2]
    sent_ns = time.time_ns()
    heartbeat = "UPDATE my_message SET time_next = time_next + INTERVAL 1 DAY WHERE id = 1"
    assert other.cursor().execute(heartbeat) == 1
    ((epoch, until_ns),) = rows(other, SHOWN.format(1))
    assert epoch == 1
    assert until_ns > sent_ns + 86_400 * 10**9
    assert rows(other, SHOWN.format(2)) == ((0, 0),), "nobody has changed it"
    # It is due already as far as its row shows, and yet this changes it and brings it back.
    reject = "UPDATE my_message SET time_next = 0 WHERE id = 2 AND epoch = 1"
    assert other.cursor().execute(reject) == 1
    assert stream.ids(1) == [2]
    assert rows(other, SHOWN.format(2))[0][0] == 2
    run(other, "UPDATE my_message SET priority = priority + 1 WHERE time_acked IS NULL")
    assert rows(other, SHOWN.format(2))[0][0] == 2


def test_a_lease_is_written_when_no_ack_comes_and_before_the_first_send_where_the_table_says_so(
    queue,
):
    other = queue.create(ack_wait=600, more=",vt_lease_delay=0.2")
    insert_all(other, [1])
    stream = queue.stream()
    assert stream.ids(1) == [1]
    eventually(lambda: rows(other, SHOWN.format(1))[0][0] == 1, "its lease is written")
    assert rows(other, SHOWN.format(1))[0][1] > time.time_ns()
    run(other, "ALTER QUEUE my_message SET (lease = written)")
    assert "vt_lease=written" in rows(other, "SHOW CREATE TABLE my_message")[0][1]
    insert_all(other, [2])
    assert stream.ids(1) == [2]
    assert rows(other, SHOWN.format(2))[0][0] == 1


def test_a_row_that_its_own_transaction_holds_is_rejected_too(queue: Queue) -> None:
    other = queue.create(ack_wait=600, more=LONG)
    insert_all(other, [1])
    stream = queue.stream()
    assert stream.ids(1) == [1]
    other.begin()
    rows(other, "SELECT id FROM my_message WHERE id = 1 FOR UPDATE")
    run(other, "UPDATE my_message SET time_next = 0 WHERE id = 1")
    other.commit()
    assert stream.ids(1) == [1]
    assert rows(other, SHOWN.format(1))[0][0] == 2, "both sends are counted"
