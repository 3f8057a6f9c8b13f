"""The moment: messages of the future, to the second and never early."""

import time

import pytest

from tests.fixtures.streams import run
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert


pytestmark = pytest.mark.db

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
    producer, stream = queue.create(), queue.stream()
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
