"""Everything, once: a backlog that two consumers share."""

import threading

import pytest

from tests.fixtures.streams import (
    Consumer,
    eventually,
    rows,
    run,
)
from tests.integration.conftest import Queue, SharedCluster
from tests.integration.delivery.producing import insert_all


pytestmark = pytest.mark.db


class Worker(threading.Thread):
    """A consumer that acknowledges what it gets, in batches."""

    def __init__(self, cluster: SharedCluster, keyspace: str) -> None:
        super().__init__()
        self.received: list[int] = []
        self.acked = 0
        self._stream = Consumer(
            cluster.proxy.connect(database=keyspace, autocommit=None),
            "STREAM * FROM my_message",
        )
        self._acks = cluster.proxy.connect(database=keyspace, autocommit=True)
        self.stopping = threading.Event()

    def run(self) -> None:
        batch: list[int] = []
        while not self.stopping.is_set() or batch:
            row = self._stream.poll(0.05)
            if row is not None:
                self.received.append(row[0])
                batch.append(row[0])
            if batch and (row is None or len(batch) >= 100):
                ids = ", ".join(map(str, batch))
                self.acked += run(
                    self._acks, f"UPDATE my_message SET time_acked = NOW() WHERE id IN ({ids})"
                )
                batch.clear()


def test_a_backlog_is_shared_out_and_each_message_acknowledged_once(queue: Queue) -> None:
    count = 10_000
    producer = queue.create(batch_size=100, cache_size=2000)
    for start in range(1, count + 1, 1000):
        insert_all(producer, range(start, start + 1000))
    workers = [Worker(queue.cluster, queue.keyspace) for _ in range(2)]
    for worker in workers:
        worker.start()
    try:
        eventually(lambda: sum(w.acked for w in workers) >= count, "all acked", 60)
    finally:
        for worker in workers:
            worker.stopping.set()
        for worker in workers:
            worker.join()
    received = [ident for worker in workers for ident in worker.received]
    assert sorted(received) == list(range(1, count + 1))
    assert sum(worker.acked for worker in workers) == count
    assert all(worker.received for worker in workers)
    assert not rows(producer, "SELECT id FROM my_message WHERE time_acked IS NULL")
