"""When a batch is claimed and when it is acknowledged, in the order in which Spark calls."""

import pytest
from hypothesis import given, strategies as st

from spark.errors import JobError


class Shards:
    """Each shard has so many messages; ids are given out in order."""

    def __init__(self, **sizes):
        self.left = {name: list(range(size)) for name, size in sizes.items()}
        self.acked, self.away = [], set()

    def open(self, name):
        shards = self

        class Shard:
            def claim(self, limit, lease_s, until_ns=None):
                if name in shards.away:
                    raise JobError(f"{name} is away")
                taken, shards.left[name] = shards.left[name][:limit], shards.left[name][limit:]
                return {1: taken} if taken else {}

            def ack(self, claims):
                shards.acked.append((name, claims[1]))

            def renew(self, claims, lease_s): ...
            def close(self): ...
            def now_ns(self):
                return 7

            def count_due(self):
                return len(shards.left[name])

            def where_ids(self, ids):
                return "id IN", tuple(ids)

        return Shard()


@pytest.fixture
def reader_of(monkeypatch):
    from spark.endpoint import Endpoint
    from spark.source.options import Options
    from spark.source.queue import QueueReader

    def reader_of(shards, acknowledge="commit"):
        options = Options(Endpoint("h", 1, "u", "ks"), "t", acknowledge=acknowledge)
        reader = QueueReader(options, tuple(shards.left), (), {"id": "int"})
        monkeypatch.setattr(reader, "_open", shards.open)
        return reader

    return reader_of


@pytest.fixture
def pauses(monkeypatch):
    taken: list[float] = []
    monkeypatch.setattr("spark.source.queue.time.sleep", taken.append)
    return taken


def limit(rows):
    from pyspark.sql.streaming.datasource import ReadMaxRows

    return ReadMaxRows(rows)


def test_a_batch_is_acknowledged_when_the_next_is_asked_for_and_once(reader_of):
    shards = Shards(a=3, b=1)
    reader = reader_of(shards)
    start = reader.initialOffset()
    first = reader.latestOffset(start, limit(2))
    assert first["claims"] == {"a": {"1": [0]}, "b": {"1": [0]}}
    assert shards.acked == []
    assert [part.values for part in reader.partitions(start, first)] == [(0,), (0,)]
    second = reader.latestOffset(first, limit(9))
    assert second["sequence"] == 2
    assert shards.acked == [("a", [0]), ("b", [0])]
    reader.commit(first)
    assert len(shards.acked) == 2
    assert reader.latestOffset(second, limit(9)) == second
    assert shards.acked[2:] == [("a", [1, 2])]
    reader.stop()


def test_a_shard_that_is_away_leaves_the_others_working(reader_of):
    shards = Shards(a=1, b=1)
    shards.away.add("a")
    reader = reader_of(shards)
    offset = reader.latestOffset(reader.initialOffset(), limit(5))
    assert list(offset["claims"]) == ["b"]
    with pytest.raises(JobError, match="a is away"):
        reader.latestOffset(offset, limit(5))
    assert shards.acked == [("b", [0])]
    reader.stop()


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
    reader.stop()


def test_available_now_takes_what_was_due_when_it_began(reader_of):
    shards = Shards(a=3)
    reader = reader_of(shards)
    reader.prepareForTriggerAvailableNow()
    shards.left["a"] += [8, 9]
    offset = reader.latestOffset(reader.initialOffset(), limit(2))
    offset = reader.latestOffset(offset, limit(2))
    assert reader.latestOffset(offset, limit(2)) == offset
    assert shards.left["a"] == [8, 9]
    reader.stop()


def test_with_never_whoever_runs_the_batch_acknowledges(reader_of):
    shards = Shards(a=3)
    reader = reader_of(shards, "never")
    first = reader.latestOffset(reader.initialOffset(), limit(2))
    second = reader.latestOffset(first, limit(2))
    reader.commit(second)
    assert shards.acked == []
    reader.stop()


def test_a_row_may_tell_its_shard(monkeypatch):
    import pyarrow as pa

    from spark.endpoint import Endpoint
    from spark.source.batch import Part
    from spark.source.options import Options
    from spark.source.queue import QueueReader

    batch = pa.RecordBatch.from_pydict({"id": [1, 2], "word": ["a", "b"]})
    monkeypatch.setattr("spark.source.queue.read_part", lambda *given: iter([batch]))
    options = Options(Endpoint("h", 1, "u", "ks"), "t")
    part = Part("-80", "", ())
    assert list(QueueReader(options, ("-80",), (), {}).read(part)) == [batch]
    (found,) = QueueReader(options, ("-80",), (), {}, shard_place=1).read(part)
    assert found.schema.names == ["id", "streamfrom_shard", "word"]
    assert found["streamfrom_shard"].to_pylist() == ["-80", "-80"]


def test_a_shard_takes_over_what_others_leave_of_the_room(reader_of):
    reader = reader_of(Shards(a=1, b=9, c=0))
    offset = reader.latestOffset(reader.initialOffset(), limit(8))
    assert {name: len(claims["1"]) for name, claims in offset["claims"].items()} == {
        "a": 1,
        "b": 7,
    }
    # Fewer than there are shards: each is asked until one has some.
    reader = reader_of(Shards(a=0, b=0, c=2))
    offset = reader.latestOffset(reader.initialOffset(), limit(1))
    assert offset["claims"] == {"c": {"1": [0]}}
    reader.stop()


@given(st.integers(1, 10_000), st.integers(1, 40))
def test_shares_add_up_and_are_even(room, count):
    from spark.source.queue import shares_of

    shares = shares_of(room, [str(number) for number in range(count)])
    assert sum(shares.values()) == room
    assert max(shares.values()) - min(shares.values()) <= 1
