"""What limits the sending of a table holds on all its shards together."""

import time

import pytest

from tests.fixtures.streams import rows, run
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert_all


pytestmark = pytest.mark.db

QUIET_S = 0.3


def test_no_more_are_in_flight_than_allowed_and_an_ack_gives_room(queue: Queue) -> None:
    other = queue.create()
    run(other, "ALTER QUEUE my_message SET (ack_wait = 600, max_in_flight = 4)")
    stream = queue.stream("STREAM id FROM my_message")
    insert_all(other, list(range(1, 41)))
    first = stream.take(4)
    assert stream.poll(QUIET_S) is None
    assert rows(other, "STREAM id FROM my_message LIMIT 5 WAIT 0") == ()
    for (ident,) in first:
        run(other, f"UPDATE my_message SET time_acked = NOW() WHERE id = {ident}")
        stream.take(1)
    assert stream.poll(QUIET_S) is None
    run(other, "ALTER QUEUE my_message SET (max_in_flight = DEFAULT)")
    stream.take(32)
    assert sorted(stream.rows) == [(ident,) for ident in range(1, 41)]


def test_what_a_former_dispatcher_has_sent_is_in_flight(plain: Queue) -> None:
    other = plain.create()
    run(
        other,
        "INSERT INTO my_message (id, epoch, time_next) VALUES"
        " (1, 1, NOW() + INTERVAL 10 MINUTE), (2, 1, NOW() + INTERVAL 10 MINUTE),"
        # Of this one no lease is so long: somebody has rescheduled it.
        " (3, 1, NOW() + INTERVAL 1 DAY)",
    )
    insert_all(other, [11, 12, 13, 14])
    run(other, "ALTER QUEUE my_message SET (ack_wait = 600, max_in_flight = 3)")
    stream = plain.stream("STREAM id FROM my_message")
    assert stream.take(1) == [(11,)]
    assert stream.poll(QUIET_S) is None
    run(other, "UPDATE my_message SET time_acked = NOW() WHERE id = 1")
    assert stream.take(1) == [(12,)]
    run(other, "DELETE FROM my_message WHERE id = 2")
    assert stream.take(1) == [(13,)]


def test_no_more_are_sent_a_second_than_the_rate_and_it_changes_live(queue: Queue) -> None:
    other = queue.create()
    run(other, "ALTER QUEUE my_message SET (ack_wait = 600, max_rate = 0.001)")
    stream = queue.stream("STREAM id FROM my_message")
    insert_all(other, list(range(1, 81)))
    assert stream.poll(QUIET_S) is None
    assert rows(other, "STREAM id FROM my_message LIMIT 5 WAIT 0") == ()
    began_s = time.monotonic()
    run(other, "ALTER QUEUE my_message SET (max_rate = 20)")
    stream.take(30)
    # However slow the machine is, it is no faster: at the most two are there from the start, one for each shard.
    assert time.monotonic() - began_s >= (30 - 2) / (20 * 1.1)
    run(other, "ALTER QUEUE my_message SET (max_rate = DEFAULT)")
    stream.take(50)
    assert sorted(stream.rows) == [(ident,) for ident in range(1, 81)]
