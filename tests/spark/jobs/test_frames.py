"""A function sees a frame's own names, also those that PySpark would take apart."""

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from streamfrom.spark.jobs.frames import mapped


pytestmark = [pytest.mark.spark, pytest.mark.slow]


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
