"""How a window is cut and when it is closed, and that a function sees a frame's own names."""

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs import reading
from streamfrom.spark.jobs.reading import CLOSED_NS, check_closed, mapped, slices


def test_slices_touch_and_do_not_overlap():
    assert slices(0, 10, 4) == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert slices(0, 2, 4) == [(0, 1), (1, 2)]


NOW_NS = 1_800_000_000 * 10**9
HOUR_NS = 3_600 * 10**9


@pytest.mark.parametrize(
    ("own_ns", "shards_ns", "behind"),
    [
        (NOW_NS, (NOW_NS, NOW_NS), ""),
        (NOW_NS + HOUR_NS, (NOW_NS, NOW_NS + 1), ""),
        (NOW_NS - HOUR_NS, (NOW_NS, NOW_NS), "this machine says 2027-01-15 07:00:00 UTC"),
        (NOW_NS, (NOW_NS, NOW_NS - HOUR_NS), "shard 80- says 2027-01-15 07:00:00 UTC"),
        (NOW_NS, (NOW_NS - 1, NOW_NS), "shard -80 says 2027-01-15 07:59:59 UTC"),
    ],
)
def test_the_clock_that_is_furthest_behind_decides(monkeypatch, own_ns, shards_ns, behind):
    told = dict(zip(("-80", "80-"), shards_ns, strict=True))
    monkeypatch.setattr(reading, "clock_of", lambda _, shard: told[shard])
    monkeypatch.setattr("time.time_ns", lambda: own_ns)
    commerce = Endpoint("db", 15306, "app", "commerce")
    if not behind:
        check_closed(commerce, tuple(told), NOW_NS - CLOSED_NS, "--to")
        return
    with pytest.raises(
        RequestError,
        match=f"^--to must lie a minute back by every clock, and that of {behind}$",
    ):
        check_closed(commerce, tuple(told), NOW_NS - CLOSED_NS, "--to")


@pytest.mark.spark
@pytest.mark.slow
def test_columns_with_dots_and_backticks_keep_their_names(spark):
    names = ["a.b", "c`d", "Ä e"]
    schema = StructType([StructField(name, LongType()) for name in names])

    def told(batches):
        for batch in batches:
            rows = [str(row) for row in batch.to_pylist()]
            yield pa.RecordBatch.from_pydict({"row": rows})

    frame = spark.createDataFrame([(1, 2, 3)], schema)
    assert [one.row for one in mapped(frame, told, "row string").collect()] == [
        str(dict(zip(names, (1, 2, 3), strict=True)))
    ]
