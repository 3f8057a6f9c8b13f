"""An offset is read as it was written, and none of another query is."""

import ast
import json

import pytest

from streamfrom.spark.errors import RequestError
from streamfrom.spark.source.offsets import FeedOffset, QueueOffset, feed_offset, queue_offset
from tests.cases import cases


SHARDS = ("-80", "80-")


def test_offsets_come_back_from_json_as_they_were():
    queue = QueueOffset("ks.t", 3, {"-80": {1: [1, 2], 7: [3]}, "80-": {1: ["a'", "ff00"]}})
    assert queue_offset(json.loads(json.dumps(queue.json())), "ks.t", SHARDS) == queue
    feed = FeedOffset("ks.t", {"-80": 2**62})
    assert feed_offset(json.loads(json.dumps(feed.json())), "ks.t", SHARDS) == feed


@cases(told=ast.literal_eval, what=str)
def test_a_checkpoint_of_another_query_is_refused(told, what):
    with pytest.raises(RequestError, match=f"{what}.*checkpointLocation of its own"):
        queue_offset(told, "ks.t", SHARDS)
