"""An offset is read as it was written, and none of another query is."""

import ast
import json

import pytest

from streamfrom.spark.errors import RequestError
from streamfrom.spark.source.offsets import (
    QueueOffset,
    feed_offset,
    feed_upto_ns,
    queue_offset,
)
from tests.cases import cases


SHARDS = ("-80", "80-")


def test_offsets_come_back_from_json_as_they_were():
    queue = QueueOffset("ks.t", 3, {"-80": {1: [1, 2], 7: [3]}, "80-": {1: ["a'", "ff00"]}})
    assert queue_offset(json.loads(json.dumps(queue.json())), "ks.t", SHARDS) == queue
    feed = json.loads(json.dumps(feed_offset("ks.t", {"-80": 2**62})))
    assert feed_upto_ns(feed, "ks.t", SHARDS) == {"-80": 2**62}


@cases(told=ast.literal_eval, what=str)
def test_a_checkpoint_of_another_query_is_refused(told, what):
    with pytest.raises(RequestError, match=f"{what}.*checkpointLocation of its own"):
        queue_offset(told, "ks.t", SHARDS)
