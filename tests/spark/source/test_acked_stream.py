"""How far the feed goes: never back, and never beyond what is safe. Reading is `test_feed_db.py`."""

import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import RequestError
from streamfrom.spark.source.acked_stream import AckedStreamReader
from streamfrom.spark.source.offsets import QueueOffset, feed_offset
from streamfrom.spark.source.options import Options


@pytest.fixture
def reader():
    return AckedStreamReader(Options(Endpoint("h", 1, "u", "ks"), "t"), ("a", "b"), ())


def test_a_batch_is_what_lies_between_two_offsets(reader):
    start = reader.initialOffset()
    end = feed_offset("ks.t", {"a": 5, "b": 0})
    (part,) = reader.partitions(start, end)
    assert (part.shard, part.values) == ("a", (0, 5))
    assert reader.partitions(end, end) == []


def test_a_checkpoint_of_the_queue_is_refused(reader):
    with pytest.raises(RequestError, match=r"this one reads ks.t with feed=acked"):
        reader.partitions(QueueOffset("ks.t").json(), reader.initialOffset())
