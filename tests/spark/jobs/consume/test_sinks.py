"""Where results go, and that they are there once."""

from typing import Any

import pyarrow.dataset as ds
import pytest

from streamfrom.spark.errors import JobError
from streamfrom.spark.jobs.consume.sinks import FolderSink, TableSink


pytestmark = pytest.mark.spark


def test_a_folder_appears_whole(spark, tmp_path):
    folder = FolderSink(tmp_path, "abc")
    seven = spark.range(7)
    assert folder.write(3, seven) == 7
    assert not list(tmp_path.glob("streamfrom_batch=*"))
    # A try that broke off is replaced.
    assert folder.write(3, spark.range(5)) == 5
    for _ in range(2):
        folder.publish(3)
        published = tmp_path / "streamfrom_batch=abc-00000003"
        assert sorted(
            ds.dataset(list(map(str, published.glob("*.parquet")))).to_table()["id"].to_pylist()
        ) == [*range(5)]
    assert spark.read.parquet(str(tmp_path)).count() == 5
    assert folder.write(4, seven.limit(0)) == 0
    folder.publish(4)


def test_a_folder_of_the_same_name_is_left_as_it_is(tmp_path):
    folder = FolderSink(tmp_path, "abc")
    for place in ("_staging/abc-00000003", "streamfrom_batch=abc-00000003"):
        (tmp_path / place).mkdir(parents=True)
    with pytest.raises(JobError, match="is there already: remove it if"):
        folder.publish(3)


def test_all_rows_that_were_given_to_a_table_are_counted(spark):
    class Fake:
        def insert(self, arrow):
            yield from ((batch.num_rows, 0) for batch in arrow)

    plan: Any = Fake()
    table = TableSink(plan)
    assert table.write(0, spark.range(12)) == 12
    assert table.write(0, spark.range(0)) == 0
