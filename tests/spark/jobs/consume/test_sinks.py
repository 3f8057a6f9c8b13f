"""Where results go, and that they are there once."""

from typing import Any

import pyarrow.dataset as ds
import pytest

from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.consume.checkpoint import BatchOutcome, Checkpoint
from streamfrom.spark.jobs.consume.sinks import ConsoleSink, FolderSink, dead_columns, written
from streamfrom.spark.jobs.writing import TargetColumn
from streamfrom.spark.source.writer import Written


pytestmark = pytest.mark.spark


def test_a_folder_appears_whole_with_how_the_batch_ended(spark, tmp_path):
    folder = FolderSink(tmp_path, "abc")
    seven = spark.range(7)
    assert folder.write(3, seven) == 7
    assert folder.outcome(3) is None
    assert not list(tmp_path.glob("streamfrom_batch=*"))
    # A try that broke off is replaced.
    assert folder.write(3, spark.range(5)) == 5
    folder.publish(3, BatchOutcome(5, 5))
    assert folder.outcome(3) == BatchOutcome(5, 5)
    published = tmp_path / "streamfrom_batch=abc-00000003"
    assert sorted(
        ds.dataset(list(map(str, published.glob("*.parquet")))).to_table()["id"].to_pylist()
    ) == [*range(5)]
    assert spark.read.parquet(str(tmp_path)).count() == 5
    assert folder.write(4, seven.limit(0)) == 0
    folder.publish(4, BatchOutcome(0, 0))
    # Of dead letters a batch has what its last try put there.
    folder.put(3, spark.range(2))
    assert spark.read.parquet(str(tmp_path)).count() == 2
    folder.put(3, None)
    folder.put(3, None)
    assert folder.outcome(3) is None


def test_lines_are_printed_once_the_batch_is_done(spark, tmp_path, capsys):
    console = ConsoleSink(Checkpoint(tmp_path))
    rows = spark.createDataFrame([(1, "é"), (2, None)], "id bigint, word string")
    assert console.write(0, rows) == 2
    assert capsys.readouterr().out == ""
    console.publish(0, BatchOutcome(2, 2))
    assert capsys.readouterr().out == '{"id":1,"word":"é"}\n{"id":2,"word":null}\n'
    assert console.outcome(0) == BatchOutcome(2, 2)
    assert console.outcome(1) is None


def test_all_rows_that_were_given_to_a_table_are_counted(spark):
    class Fake:
        def write(self, arrow):
            return Written(sum(batch.num_rows for batch in arrow), 0)

    plan: Any = Fake()
    assert written(spark.range(12), plan) == 12
    assert written(spark.range(0), plan) == 0


NAMES = ["id", "priority", "epoch", "time_next", "time_acked", "word"]


def targets(**columns):
    return [TargetColumn(name, kind) for name, kind in columns.items()]


def test_a_table_gets_the_message_and_what_it_asks_for_besides(spark):
    schema = "id bigint, epoch bigint, word string, streamfrom_error string"
    frame = spark.createDataFrame([(1, 3, "w", "too long a reason")], schema)
    kinds = {"id": "bigint", "WORD": "text", "epoch": "bigint", "time_next": "bigint"}
    plain = dead_columns(["id", "epoch", "word"], targets(**kinds))
    assert frame.select(*plain).collect() == [(1, "w")]
    more = targets(**kinds, error="varchar(8)", attempts="int")
    row = frame.select(*dead_columns(["id", "epoch", "word"], more)).collect()[0]
    assert row.asDict() == {"id": 1, "word": "w", "error": "too long", "attempts": 3}


def test_a_table_that_would_lose_a_column_is_refused(spark):
    with pytest.raises(RequestError, match="lacks priority, word"):
        dead_columns(NAMES, targets(id="bigint", error="text"))
