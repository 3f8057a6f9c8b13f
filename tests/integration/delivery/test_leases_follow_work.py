"""A lease follows the work: consumers that read ahead and work on one message after another do nothing twice."""

import threading
import time

import pytest

from tests.fixtures.streams import rows
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert_all
from tests.integration.delivery.working import (
    ACK_WAIT_S,
    STREAM,
    WORK_S,
    Worker,
    done_twice,
)


pytestmark = pytest.mark.db


def test_naive_workers_do_nothing_twice_whatever_the_backlog(queue: Queue) -> None:
    other = queue.create(ack_wait=ACK_WAIT_S)
    insert_all(other, range(1, 31))
    enough = threading.Event()
    workers = [Worker(queue.stream(STREAM), queue.connect(), enough) for _ in range(2)]
    for worker in workers:
        worker.start()
    left = 30
    due = (
        "SELECT COUNT(*), SUM(time_next <= {}) FROM my_message"
        " WHERE time_acked IS NULL AND epoch > 0"
    )
    overdue = 0
    while left:
        time.sleep(WORK_S)
        ((left,),) = rows(other, "SELECT COUNT(*) FROM my_message WHERE time_acked IS NULL")
        ((_, found),) = rows(other, due.format(time.time_ns()))
        overdue = max(overdue, int(found or 0))
    enough.set()
    for worker in workers:
        worker.join()
    assert done_twice(workers) == []
    if max(worker.longest_s for worker in workers) < ACK_WAIT_S / 2:
        assert rows(other, "SELECT COUNT(*) FROM my_message WHERE epoch <> 1") == ((0,),)
        assert not overdue, "a row looked due while somebody worked on it"
