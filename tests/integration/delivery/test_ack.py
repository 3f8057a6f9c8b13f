"""Acknowledgements, and other UPDATEs of messages."""

import time

import pytest

from tests.fixtures.streams import eventually, rows, run
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert, insert_all


pytestmark = pytest.mark.db

SECOND_NS = 10**9


@pytest.mark.parametrize(
    "ack",
    [
        "UPDATE my_message SET time_acked = 1800000000000000005 WHERE id IN (1, 4, 99)",
        "UPDATE my_message SET time_acked = NOW() WHERE id IN (1, 4)",
        "UPDATE my_message SET time_acked = UNIX_TIMESTAMP() WHERE id = 1 OR id = 4",
        "UPDATE my_message SET time_acked = CURRENT_TIMESTAMP, time_next = NULL"
        " WHERE id IN (1, 4) AND time_acked IS NULL",
    ],
)
def test_it_counts_each_row_once_and_leaves_the_row_complete(queue: Queue, ack: str) -> None:
    producer, stream = queue.create(ack_wait=0.4), queue.stream()
    insert_all(producer, (1, 4))
    stream.take(2)
    assert run(producer, ack) == 2
    assert run(producer, ack) == 0
    found = rows(producer, "SELECT time_next, time_acked FROM my_message")
    assert [time_next for time_next, _ in found] == [None, None]
    if "1800000000000000005" in ack:
        assert {time_acked for _, time_acked in found} == {1800000000000000005}
    else:
        for _, time_acked in found:
            assert abs(time_acked - time.time_ns()) < 60 * SECOND_NS
    stream.nothing_new(producer)


@pytest.mark.parametrize("undo", ["ROLLBACK", "ROLLBACK TO a"])
def test_it_counts_on_commit(queue: Queue, undo: str) -> None:
    producer, stream = queue.create(ack_wait=0.4, more=",vt_max_backoff=0.4"), queue.stream()
    consumer = queue.connect(autocommit=False)
    insert_all(producer, (1, 4))
    stream.take(2)
    ack = "UPDATE my_message SET time_acked = NOW() WHERE id IN (1, 4)"
    run(consumer, "SAVEPOINT a")
    assert run(consumer, ack) == 2
    run(consumer, undo)
    consumer.commit()
    # A row that was locked when it was due is tried again a second later.
    stream.comes(1, 4)
    assert run(consumer, ack) == 2
    consumer.commit()
    stream.nothing_new(producer)


def test_an_ack_past_the_proxy_is_respected(plain: Queue) -> None:
    producer, stream = plain.create(ack_wait=0.4), plain.stream()
    insert(producer, 1)
    stream.next()
    plain.cluster.direct(
        "UPDATE my_message SET time_acked = 1800000000000000005, time_next = NULL WHERE id = 1"
    )
    stream.nothing_new(producer)


def test_acked_rows_are_purged_once_they_are_old_enough_and_others_never(queue: Queue) -> None:
    producer = queue.create(purge_after=1, poller_interval=0.3)
    queue.stream()
    insert_all(producer, range(1, 11))
    acked_at = time.monotonic()
    run(producer, "UPDATE my_message SET time_acked = NOW() WHERE id IN (1, 4)")
    remaining = "SELECT id FROM my_message"
    eventually(lambda: len(rows(producer, remaining)) == 8, "two rows purged")
    assert time.monotonic() - acked_at >= 0.9
    assert {1, 4}.isdisjoint(ident for (ident,) in rows(producer, remaining))
