"""How far the feed goes: never back, and never beyond what is safe; each acknowledged message once, none too early."""

import time

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import RequestError
from streamfrom.spark.source.acked_stream import AckedStreamReader
from streamfrom.spark.source.offsets import offset_of
from streamfrom.spark.source.options import Options
from streamfrom.spark.table_schema import fields_of
from tests.fixtures.streams import message_table, run as execute


@pytest.fixture
def reader():
    return AckedStreamReader(Options(Endpoint("h", 1, "u", "ks"), "t"), ("a", "b"), ())


def test_a_batch_is_what_lies_between_two_offsets(reader):
    start = reader.initialOffset()
    end = offset_of("acked", "ks.t", upto_ns={"a": 5, "b": 0})
    (part,) = reader.partitions(start, end)
    assert (part.shard, part.values) == ("a", (0, 5))
    assert reader.partitions(end, end) == []


def test_a_checkpoint_of_the_queue_is_refused(reader):
    with pytest.raises(RequestError, match=r"this one reads ks.t with feed=acked"):
        reader.partitions(offset_of("queue", "ks.t", claims={}), reader.initialOffset())


@pytest.mark.spark
@pytest.mark.db
def test_each_acknowledged_message_comes_once_and_not_before_the_lag(sharded_proxy):
    connection = sharded_proxy.connect(database="commerce", autocommit=True)
    execute(connection, message_table())
    base_ns = time.time_ns() - 3600 * 10**9
    options = Options(
        Endpoint("127.0.0.1", sharded_proxy.port, "root", "commerce"), "my_message", lag_s=60.0
    )
    shards = options.chosen_shards()
    fields = fields_of(options.endpoint, shards, options.table)
    reader = AckedStreamReader(options, shards, fields)
    seen: list[int] = []

    def drain(offset):
        while (end := reader.latestOffset(offset, ReadMaxRows(10))) != offset:
            for part in reader.partitions(offset, end):
                for batch in reader.read(part):
                    seen.extend(batch["id"].to_pylist())
            offset = end
        return offset

    offset = reader.initialOffset()
    for first, last in ((1, 12), (13, 30)):
        values = ", ".join(f"({n}, NULL, {base_ns + n})" for n in range(first, last + 1))
        execute(
            connection, f"INSERT INTO my_message (id, time_next, time_acked) VALUES {values}"
        )
        offset = drain(offset)
        assert sorted(seen) == list(range(1, last + 1))
    execute(
        connection,
        f"INSERT INTO my_message (id, time_acked) VALUES (99, {time.time_ns() + 10**12})",
    )
    assert drain(offset) == offset
