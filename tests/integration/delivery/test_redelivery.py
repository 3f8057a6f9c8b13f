"""What is not acknowledged comes again, later each time."""

import time

import pytest

from tests.fixtures.streams import rows, run, value
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert


pytestmark = pytest.mark.db

SECOND_NS = 10**9


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
        ((now_epoch, now_due_ns),) = rows(
            producer, "SELECT epoch, time_next FROM my_message WHERE id = 1"
        )
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
