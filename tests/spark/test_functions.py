import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as F

from streamfrom.spark.functions import keyspace_id, shard_of
from streamfrom.spark.keyspace_ids import KeyspaceIdError


pytestmark = [pytest.mark.spark, pytest.mark.slow]

pyspark = pytest.importorskip("pyspark", reason="no pyspark: pip install '.[spark]'")


def test_ids_and_shards_are_columns(spark):
    found = (
        spark.range(0, 7)
        .select("id", F.hex(keyspace_id("id")).alias("ksid"), shard_of("id", ["-80", "80-"]))
        .collect()
    )
    assert [tuple(row) for row in found[:4]] == [
        (0, "8CA64DE9C1B123A7", "80-"),
        (1, "166B40B44ABA4BD6", "-80"),
        (2, "06E7EA22CE92708F", "-80"),
        (3, "4EB190C9A2FA169C", "-80"),
    ]
    assert [row[2] for row in found] == ["80-", "-80", "-80", "-80", "80-", "-80", "80-"]


def test_what_has_none_is_null(spark):
    frame = spark.createDataFrame([(None,), (5,)], "id bigint")
    asked = frame.select(keyspace_id("id"), shard_of("id", ["-"]))
    assert asked.columns == ["keyspace_id(id)", "shard_of(id)"]
    found = asked.collect()
    assert [row[0] is None for row in found] == [True, False]
    assert [row[1] for row in found] == [None, "-"]


def test_a_wrong_shard_fails_before_a_job_starts(spark):
    with pytest.raises(KeyspaceIdError, match="no shard of -80 reaches"):
        shard_of("id", ["-80"])


def test_a_wrong_type_fails_with_the_cure(spark):
    with pytest.raises(PythonException, match="cast it to an integer first"):
        spark.range(1).selectExpr("'x' AS name").select(keyspace_id("name")).collect()
