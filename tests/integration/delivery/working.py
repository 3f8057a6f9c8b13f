"""Workers as people first write them: for each row, work and ack."""

import threading
import time
from collections import Counter
from typing import Any

from tests.fixtures.streams import Consumer, run


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
