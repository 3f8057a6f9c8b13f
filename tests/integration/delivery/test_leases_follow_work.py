"""A lease follows the work: consumers that read ahead and work on one message after another do nothing twice."""

import threading
import time
from collections import Counter

import pytest

from tests.fixtures.streams import rows, run
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

    def __init__(self, queue: Queue, enough: threading.Event) -> None:
        super().__init__()
        self.stream, self.own = queue.stream(STREAM), queue.connect()
        self.enough = enough
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


def test_naive_workers_do_nothing_twice_whatever_the_backlog(queue: Queue) -> None:
    other = queue.create(ack_wait=ACK_WAIT_S)
    insert_all(other, range(1, 31))
    enough = threading.Event()
    workers = [Worker(queue, enough) for _ in range(2)]
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
    # Whoever was held up by a busy machine for as long as a lease may have lost some.
    if max(worker.longest_s for worker in workers) < ACK_WAIT_S / 2:
        worked_on = Counter(one for worker in workers for one in worker.worked_on)
        assert [one for one, times in worked_on.items() if times > 1] == []
        assert rows(other, "SELECT COUNT(*) FROM my_message WHERE epoch <> 1") == ((0,),)
        assert not overdue, "a row looked due while somebody worked on it"


def test_a_heartbeat_finds_the_longer_lease_in_its_row(queue: Queue) -> None:
    other = queue.create(ack_wait=600, more=",vt_lease=written")
    insert_all(other, [1, 2])
    stream = queue.stream()
    stream.take(2)
    lease = "SELECT time_next FROM my_message WHERE id = {}"
    ((sent_ns,),) = rows(other, lease.format(2))
    time.sleep(WORK_S)  # the first message takes a moment
    run(other, ACK.format(1))
    run(other, "UPDATE my_message SET time_next = time_next + INTERVAL 1 DAY WHERE id = 2")
    ((longer_ns,),) = rows(other, lease.format(2))
    assert longer_ns >= sent_ns + 86_400 * 10**9 + WORK_S * 10**9 * 0.9
    assert rows(other, "SELECT epoch FROM my_message WHERE id = 2") == ((1,),)
