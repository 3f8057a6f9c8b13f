"""When a batch is claimed and when it is acknowledged, in the order in which Spark calls."""

import threading

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyspark.sql.streaming.datasource import ReadMaxRows as limit

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import JobError
from streamfrom.spark.source.batch import TablePartition
from streamfrom.spark.source.options import Options
from streamfrom.spark.source.queue import QueueReader, shares_of


class Shards:
    """Each shard has so many messages; ids are given out in order."""

    def __init__(self, **sizes):
        self.left = {name: list(range(size)) for name, size in sizes.items()}
        self.acked, self.away, self.refusing = [], set(), set()
        self.renewed = []
        self.is_acking = threading.Event()
        self.may_ack = threading.Event()
        self.may_ack.set()

    def open(self, name):
        shards = self

        class Shard:
            def __init__(self):
                self.in_use = threading.Lock()

            def claim(self, limit, lease_s):
                if name in shards.away:
                    raise JobError(f"{name} is away")
                taken, shards.left[name] = shards.left[name][:limit], shards.left[name][limit:]
                return {1: taken} if taken else {}

            def ack(self, ids):
                with self.in_use:
                    shards.is_acking.set()
                    if not shards.may_ack.wait(60):
                        raise AssertionError("nobody let it acknowledge")
                if name in shards.refusing:
                    raise JobError(f"{name} refuses")
                shards.acked.append((name, ids))

            def renew(self, claims, lease_s):
                assert not self.in_use.locked(), "it would wait for a lock"
                shards.renewed.append(claims)

            def close(self): ...
            def count_due(self):
                return len(shards.left[name])

            def where_ids(self, ids):
                return "id IN", tuple(ids)

        return Shard()


@pytest.fixture
def reader_of(monkeypatch):
    readers = []

    def reader_of(shards, acknowledge="commit"):
        options = Options(Endpoint("h", 1, "u", "ks"), "t", acknowledge=acknowledge)
        reader = QueueReader(options, tuple(shards.left), (), {"id": "int"})
        opened = lambda _endpoint, name, *_: shards.open(name)  # noqa: E731
        monkeypatch.setattr("streamfrom.spark.source.queue.ClaimShard", opened)
        readers.append(reader)
        return reader

    yield reader_of
    for reader in readers:
        reader.stop()


@pytest.fixture
def pauses(monkeypatch):
    taken: list[float] = []
    monkeypatch.setattr("streamfrom.spark.source.queue.time.sleep", taken.append)
    return taken


def test_a_batch_is_acknowledged_when_the_next_is_asked_for_and_once(reader_of):
    shards = Shards(a=3, b=1)
    reader = reader_of(shards)
    start = reader.initialOffset()
    first = reader.latestOffset(start, limit(2))
    assert first["claims"] == {"a": {1: [0]}, "b": {1: [0]}}
    assert shards.acked == []
    assert [part.values for part in reader.partitions(start, first)] == [(0,), (0,)]
    second = reader.latestOffset(first, limit(9))
    assert second["sequence"] == 2
    reader.partitions(first, second)
    reader.commit(first)
    # Nothing comes after it, so it does not end before all is acknowledged.
    assert reader.latestOffset(second, limit(9)) == second
    assert sorted(shards.acked) == [("a", [0]), ("a", [1, 2]), ("b", [0])]


def test_a_batch_is_acknowledged_while_the_next_is_at_work_and_kept_so_long(reader_of):
    shards = Shards(a=3)
    reader = reader_of(shards)
    first = reader.latestOffset(reader.initialOffset(), limit(1))
    shards.may_ack.clear()
    second = reader.latestOffset(first, limit(1))
    assert second["claims"] == {"a": {1: [1]}}
    reader.partitions(first, second)
    assert reader.renewer.holds({"a": {1: [0]}})
    assert reader.renewer.holds({"a": {1: [1]}})
    shards.may_ack.set()
    third = reader.latestOffset(second, limit(1))
    assert shards.acked[0] == ("a", [0])
    assert not reader.renewer.holds({"a": {1: [0]}})
    assert reader.renewer.holds({"a": {1: [2]}})
    reader.commit(third)
    reader.stop()
    assert shards.acked == [("a", [0]), ("a", [1]), ("a", [2])]


def test_leases_are_renewed_while_an_acknowledgement_waits(reader_of):
    shards = Shards(a=2)
    reader = reader_of(shards)
    first = reader.latestOffset(reader.initialOffset(), limit(1))
    shards.may_ack.clear()
    reader.latestOffset(first, limit(1))
    assert shards.is_acking.wait(60)
    reader.renewer.renew_all()
    assert {1: [1]} in shards.renewed
    shards.may_ack.set()


def test_what_goes_on_after_a_crash_acknowledges_the_batch_before_again(reader_of):
    shards = Shards(a=0)
    reader = reader_of(shards)
    first = {"feed": "queue", "table": "ks.t", "sequence": 1, "claims": {"a": {"1": [4]}}}
    second = {**first, "sequence": 2, "claims": {"a": {"1": [5]}}}
    reader.partitions(first, second)
    reader.stop()
    assert shards.acked == [("a", [4])]


def test_a_batch_that_could_not_be_acknowledged_is_said_and_tried_again(reader_of):
    shards = Shards(a=2)
    reader = reader_of(shards)
    first = reader.latestOffset(reader.initialOffset(), limit(1))
    shards.refusing.add("a")
    second = reader.latestOffset(first, limit(1))
    with pytest.raises(JobError, match="a refuses"):
        reader.latestOffset(second, limit(1))
    shards.refusing.clear()
    reader.commit(first)
    reader.stop()
    assert shards.acked == [("a", [0])]


def test_a_shard_that_is_away_leaves_the_others_working(reader_of):
    shards = Shards(a=1, b=1)
    shards.away.add("a")
    reader = reader_of(shards)
    offset = reader.latestOffset(reader.initialOffset(), limit(5))
    assert list(offset["claims"]) == ["b"]
    with pytest.raises(JobError, match="a is away"):
        reader.latestOffset(offset, limit(5))
    assert shards.acked == [("b", [0])]


def test_an_empty_queue_is_not_asked_in_a_hurry(reader_of, pauses):
    reader = reader_of(Shards(a=1))
    offset = reader.latestOffset(reader.initialOffset(), limit(5))
    assert pauses == []
    assert reader.latestOffset(offset, limit(5)) == offset
    assert len(pauses) == 1
    # What ends when the queue is empty need not wait for more.
    ending = reader_of(Shards(a=0))
    ending.prepareForTriggerAvailableNow()
    ending.latestOffset(ending.initialOffset(), limit(5))
    assert len(pauses) == 1


def test_available_now_takes_what_was_due_when_it_began(reader_of):
    shards = Shards(a=3)
    reader = reader_of(shards)
    reader.prepareForTriggerAvailableNow()
    shards.left["a"] += [8, 9]
    offset = reader.latestOffset(reader.initialOffset(), limit(2))
    offset = reader.latestOffset(offset, limit(2))
    assert reader.latestOffset(offset, limit(2)) == offset
    assert shards.left["a"] == [8, 9]


def test_with_never_whoever_runs_the_batch_acknowledges(reader_of):
    shards = Shards(a=3)
    reader = reader_of(shards, "never")
    first = reader.latestOffset(reader.initialOffset(), limit(2))
    second = reader.latestOffset(first, limit(2))
    reader.commit(second)
    assert shards.acked == []


def test_a_row_may_tell_its_shard(monkeypatch):
    batch = pa.RecordBatch.from_pydict({"id": [1, 2], "word": ["a", "b"]})
    monkeypatch.setattr(
        "streamfrom.spark.source.batch.fetch_rows", lambda *given: iter([batch])
    )
    options = Options(Endpoint("h", 1, "u", "ks"), "t")
    part = TablePartition("-80", "", ())
    assert list(QueueReader(options, ("-80",), (), {}).read(part)) == [batch]
    (found,) = QueueReader(options, ("-80",), (), {}, shard_place=1).read(part)
    assert found.schema.names == ["id", "streamfrom_shard", "word"]
    assert found["streamfrom_shard"].to_pylist() == ["-80", "-80"]


def test_a_shard_takes_over_what_others_leave_of_the_room(reader_of):
    reader = reader_of(Shards(a=1, b=9, c=0))
    offset = reader.latestOffset(reader.initialOffset(), limit(8))
    counts = {name: len(claims[1]) for name, claims in offset["claims"].items()}
    assert counts == {"a": 1, "b": 7}
    # Fewer than there are shards: each is asked until one has some.
    reader = reader_of(Shards(a=0, b=0, c=2))
    offset = reader.latestOffset(reader.initialOffset(), limit(1))
    assert offset["claims"] == {"c": {1: [0]}}


@given(st.integers(1, 10_000), st.integers(1, 40))
def test_shares_add_up_and_are_even(room, count):
    shares = shares_of(room, [str(number) for number in range(count)])
    assert sum(shares.values()) == room
    assert max(shares.values()) - min(shares.values()) <= 1
