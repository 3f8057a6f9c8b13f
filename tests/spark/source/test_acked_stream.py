"""How far the feed goes: never back, and never beyond what is safe. Reading is `test_feed_db.py`."""

import pytest


@pytest.fixture
def reader():
    from streamfrom.spark.endpoint import Endpoint
    from streamfrom.spark.source.acked_stream import AckedStreamReader
    from streamfrom.spark.source.options import Options

    return AckedStreamReader(Options(Endpoint("h", 1, "u", "ks"), "t"), ("a", "b"), ())


def test_a_batch_is_what_lies_between_two_offsets(reader):
    from streamfrom.spark.source.offsets import FeedOffset

    start = reader.initialOffset()
    end = FeedOffset("ks.t", {"a": 5, "b": 0}).json()
    (part,) = reader.partitions(start, end)
    assert (part.shard, part.values) == ("a", (0, 5))
    assert reader.partitions(end, end) == []


def test_a_checkpoint_of_the_queue_is_refused(reader):
    from streamfrom.spark.errors import RequestError
    from streamfrom.spark.source.offsets import QueueOffset

    with pytest.raises(RequestError, match=r"this one reads ks.t with feed=acked"):
        reader.partitions(QueueOffset("ks.t").json(), reader.initialOffset())
