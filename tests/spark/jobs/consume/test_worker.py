"""What becomes of each message of a batch, without a server."""

import pytest

from streamfrom.spark.errors import JobError
from streamfrom.spark.jobs.consume.worker import Worker
from streamfrom.spark.jobs.progress import Progress
from tests.spark.jobs.consume.functions import kept


pytestmark = pytest.mark.spark

SCHEMA = "id bigint, epoch bigint, time_acked bigint, word string, streamfrom_shard string"


class Queue:
    """Both shards and the sink, and what they were asked to do, in order."""

    def __init__(self):
        self.acked, self.back, self.sunk, self.order = [], [], {}, []
        self.outcomes = {}
        self.failure = None

    def shard(self, name):
        queue = self

        class Shard:
            def ack(self, ids):
                queue.order.append("ack")
                queue.acked += ids

            def put_back(self, epoch, ids, wait_s, reason):
                queue.back += [(ident, epoch, wait_s, reason) for ident in ids]

            def told(self, ident):
                return ident

            def close(self):
                queue.order.append("close")

        return Shard()

    # The checkpoint.
    def outcome(self, number):
        return self.outcomes.get(number)

    def keep(self, number, outcome):
        self.outcomes[number] = outcome

    # The sink.
    def write(self, number, frame):
        rows = sorted(row.id for row in frame.collect())
        if self.failure:
            raise self.failure
        self.sunk[number] = rows
        return len(rows)

    def publish(self, number):
        assert number in self.outcomes
        self.order.append("publish")


@pytest.fixture
def queue():
    return Queue()


def worker_of(queue, function=kept, retry_s=30.0):
    shards = {name: queue.shard(name) for name in ("-80", "80-")}
    return Worker(function, queue, queue, shards, Progress(), retry_s)


def batch_of(spark, *rows):
    return spark.createDataFrame(
        [
            (ident, epoch, None, word, "-80" if ident % 2 else "80-")
            for ident, epoch, word in rows
        ],
        SCHEMA,
    )


def test_what_passes_is_acknowledged_after_the_sink_has_it(spark, queue):
    worker = worker_of(queue)
    worker(batch_of(spark, (1, 1, "a"), (2, 9, "b")), 0)
    assert queue.sunk == {0: [1, 2]}
    assert sorted(queue.acked) == [1, 2]
    assert queue.order[-3:] == ["publish", "ack", "ack"]
    assert queue.back == []
    assert worker.counts == {"read": 2, "done": 2, "rows_out": 2}
    worker.close()


def test_what_fails_alone_goes_back_with_the_reason(spark, queue):
    worker = worker_of(queue)
    rows = [(n, 1, "w") for n in range(1, 9)]
    worker(batch_of(spark, *rows, (20, 1, "poison"), (21, 2, "poison")), 5)
    assert queue.sunk == {5: [*range(1, 9)]}
    assert sorted(queue.acked) == [*range(1, 9)]
    back = [(20, 1, 30.0), (21, 2, 60.0)]
    assert sorted(row[:-1] for row in queue.back) == back
    assert all("this one is poison" in row[-1] for row in queue.back)
    counts = {"read": 10, "done": 8, "left": 2, "rows_out": 8}
    assert worker.counts == counts
    # The same batch again, which the sink has: only the acknowledging is repeated.
    again = worker_of(queue, function=None)
    queue.acked.clear()
    again(batch_of(spark, *rows[:2], (20, 1, "poison"), (21, 2, "poison")), 5)
    assert sorted(queue.acked) == [1, 2]
    assert sorted(row[:-1] for row in queue.back) == sorted([*back, *back])
    # Whoever ends a batch counts all of it, also if nothing is left to acknowledge.
    assert again.counts == counts
    last = worker_of(queue, function=None)
    last(batch_of(spark), 5)
    assert last.counts == counts


def test_a_sink_that_fails_is_no_messages_fault(spark, queue):
    queue.failure = OSError("no space left on device")
    worker = worker_of(queue)
    with pytest.raises(
        JobError, match=r"cannot be written: OSError: no space left.*run it again"
    ):
        worker(batch_of(spark, (1, 9, "a")), 0)
    assert (queue.acked, queue.back) == ([], [])
    assert isinstance(worker.failure, JobError)


def test_a_function_that_fails_on_nothing_at_all_puts_nothing_aside(spark, queue):
    def away(messages):
        raise ConnectionError("the service is away")

    worker = worker_of(queue, away)
    with pytest.raises(
        JobError, match=r"fails without any message: ConnectionError: the service"
    ):
        worker(batch_of(spark, (1, 9, "a"), (2, 9, "b")), 0)
    assert (queue.acked, queue.back) == ([], [])


def test_a_stop_in_a_batch_blames_nobody(spark, queue):
    def stopped(messages):
        worker.stopping.set()
        raise RuntimeError("cancelled")

    worker = worker_of(queue, stopped)
    with pytest.raises(JobError, match="stopped"):
        worker(batch_of(spark, (1, 9, "a")), 0)
    assert (queue.acked, queue.back) == ([], [])


def test_what_others_acknowledged_meanwhile_is_theirs(spark, queue):
    row = [(1, 1, 7, "poison", "-80"), (2, 1, None, "b", "80-")]
    worker = worker_of(queue)
    worker(spark.createDataFrame(row, SCHEMA), 0)
    assert (queue.sunk, queue.acked) == ({0: [2]}, [2])


def test_a_batch_of_nothing_leaves_nothing(spark, queue):
    worker_of(queue)(batch_of(spark), 0)
    assert (queue.sunk, queue.order) == ({}, [])


def test_waits_double_up_to_an_hour(queue):
    worker = worker_of(queue)
    assert [worker.wait_s(epoch) for epoch in (0, 1, 2, 3, 8, 9999)] == [
        30, 30, 60, 120, 3600, 3600,
    ]  # fmt: skip
    assert worker_of(queue, retry_s=9000.0).wait_s(5) == 9000
    assert queue.outcomes == {}
