"""A lease follows the work: consumers that read ahead and work on one message after another do nothing twice."""

import threading
import time
from collections import Counter
from typing import Any

import pytest

from tests.fixtures.streams import Consumer, rows, run
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert_all


pytestmark = pytest.mark.db

ACK_WAIT_S = 2
WORK_S = 0.25
ACK = "UPDATE my_message SET time_acked = NOW() WHERE id = {}"
STREAM = "STREAM /*vt+ PREFETCH=100 */ id FROM my_message"


class Worker(threading.Thread):
    """For each row: work, ack.

    worked_on: the ids, in order.
    longest_s: what it took at most from one ack to the next.
    """

    def __init__(self, stream: Consumer, own: Any, enough: threading.Event) -> None:
        super().__init__()
        self.stream, self.own, self.enough = stream, own, enough
        self.worked_on: list[int] = []
        self.longest_s = 0.0

    def run(self) -> None:
        while not self.enough.is_set():
            row = self.stream.poll(WORK_S)
            if row is None:
                continue
            began_s = time.monotonic()
            self.enough.wait(WORK_S)
            self.worked_on.append(row[0])
            run(self.own, ACK.format(row[0]))
            self.longest_s = max(self.longest_s, time.monotonic() - began_s)


def done_twice(workers: list[Worker]) -> list[int]:
    """Return what was worked on more than once; nothing if a busy machine held somebody up for as long as a lease may."""
    if max(worker.longest_s for worker in workers) >= ACK_WAIT_S / 2:
        return []
    worked_on = Counter(one for worker in workers for one in worker.worked_on)
    return [one for one, times in worked_on.items() if times > 1]


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
