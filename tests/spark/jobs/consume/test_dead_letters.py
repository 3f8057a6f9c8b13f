"""What is kept of a message that fails."""

import pytest

from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.consume.dead_letters import dead_columns
from streamfrom.spark.jobs.consume.sinks import FolderSink
from streamfrom.spark.jobs.writing import TargetColumn


pytestmark = pytest.mark.spark

NAMES = ["id", "priority", "epoch", "time_next", "time_acked", "word"]


def targets(**columns):
    return [TargetColumn(name, kind) for name, kind in columns.items()]


def frame_of(spark):
    schema = "id bigint, epoch bigint, word string, streamfrom_error string"
    return spark.createDataFrame([(1, 3, "w", "too long a reason")], schema)


def test_a_table_gets_the_message_and_what_it_asks_for_besides(spark):
    kinds = {"id": "bigint", "WORD": "text", "epoch": "bigint", "time_next": "bigint"}
    plain = dead_columns(["id", "epoch", "word"], targets(**kinds))
    assert frame_of(spark).select(*plain).collect() == [(1, "w")]
    more = targets(**kinds, error="varchar(8)", attempts="int")
    row = frame_of(spark).select(*dead_columns(["id", "epoch", "word"], more)).collect()[0]
    assert row.asDict() == {"id": 1, "word": "w", "error": "too long", "attempts": 3}


def test_a_table_that_would_lose_a_column_is_refused(spark):
    with pytest.raises(RequestError, match="lacks priority, word"):
        dead_columns(NAMES, targets(id="bigint", error="text"))


def test_a_folder_has_what_the_last_try_of_a_batch_put_there(spark, tmp_path):
    dead = FolderSink(tmp_path, "abc")
    dead.put(0, None)
    dead.put(1, frame_of(spark))
    dead.put(1, frame_of(spark))
    assert spark.read.parquet(str(tmp_path)).count() == 1
    dead.put(1, None)
    assert not list(tmp_path.glob("streamfrom_batch=*"))
