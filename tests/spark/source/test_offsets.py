"""An offset is read as it was written, and none of another query is."""

import ast
import json

import pytest

from streamfrom.spark.errors import RequestError
from streamfrom.spark.source.offsets import by_shard, offset_of
from tests.cases import cases


SHARDS = ("-80", "80-")


def test_offsets_come_back_from_json_as_they_were():
    feed = json.loads(json.dumps(offset_of("acked", "ks.t", upto_ns={"-80": 2**62})))
    assert by_shard(feed, "acked", "ks.t", SHARDS, "upto_ns") == {"-80": 2**62}


@cases(told=ast.literal_eval, what=str)
def test_a_checkpoint_of_another_query_is_refused(told, what):
    with pytest.raises(RequestError, match=f"{what}.*checkpointLocation of its own"):
        by_shard(told, "queue", "ks.t", SHARDS, "claims")
