"""Types and values; that Spark gets them so is `test_batch_db.py`."""

from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from streamfrom.spark import table_schema as module
from streamfrom.spark.errors import RequestError
from streamfrom.spark.table_schema import (
    Field,
    arrow_batch,
    asked_for,
    ddl_of,
    exact_type,
    fields_of,
    kept_type,
)
from tests.cases import cases


@cases(mysql_type=str, spark_type=str)
def test_each_type_has_one_that_holds_all_its_values(mysql_type, spark_type):
    assert exact_type(mysql_type) == spark_type


@cases(mysql_type=str, told=str)
def test_a_job_keeps_what_the_server_sends(mysql_type, told):
    assert kept_type(mysql_type) == told


@pytest.mark.parametrize(
    ("other", "is_read", "is_moved"),
    [("varchar(9)", True, True), ("varchar(20)", False, True), ("int", False, False)],
)
def test_shards_differ_for_the_source_by_the_letter_and_for_jobs_by_what_they_keep(
    monkeypatch, other, is_read, is_moved
):
    endpoint: Any = None
    types = {"-80": "varchar(9)", "80-": other}
    monkeypatch.setattr(
        module,
        "declared",
        lambda *given: (Field("c", "c", types[given[1]], given[3](types[given[1]])),),
    )
    for type_of, is_alike in ((exact_type, is_read), (kept_type, is_moved)):
        with nullcontext() if is_alike else pytest.raises(RequestError, match="alter it"):
            assert fields_of(endpoint, [*types], "t", type_of)[0].mysql_type == "varchar(9)"


def test_a_date_that_no_calendar_has_is_null_beside_others_that_are_not():
    day = Field("day", "day", "date", "date")
    at = Field("at", "at", "datetime(6)", "timestamp_ntz")
    days = pa.array([b"2024-02-29", b"2024-02-00", b"0000-00-00", b"2024-03-01"])
    moments = pa.array(
        [b"2024-01-01 00:00:00.5", None, b"2024-01-01 10:00:00", b"1969-12-31 00:00:00"]
    )
    batch = arrow_batch([day, at], [days, moments])
    told = [str(value) for value in batch["day"].to_pylist()]
    assert told == ["2024-02-29", "None", "None", "2024-03-01"]
    assert batch["at"].null_count == 1


def test_text_numbers_and_bytes_stay_what_they_are():
    kinds = {"id": "bigint unsigned", "n": "int", "body": "bit(16)", "text": "date"}
    fields = [Field(name, name, kind, kept_type(kind)) for name, kind in kinds.items()]
    sent = [
        pa.array([2**64 - 1, 1], pa.uint64()).cast(pa.decimal128(20, 0)),
        pa.array([-1, None]),
        pa.array([b"\x00\xff", None]),
        pa.array([b"2024-02-00", None]),
    ]
    assert [list(row.values()) for row in arrow_batch(fields, sent).to_pylist()] == [
        [Decimal(2**64 - 1), -1, b"\x00\xff", "2024-02-00"],
        [Decimal(1), None, None, None],
    ]


def test_a_schema_chooses_columns_and_types_that_lose_nothing():
    fields = [
        Field("id", "id", "bigint unsigned", "decimal(20,0)"),
        Field("raw", "raw", "blob", "binary"),
    ]
    assert ddl_of(fields) == "`id` decimal(20,0), `raw` binary"
    found = asked_for(fields, StructType().add("ID", LongType()))
    assert [(one.name, one.column, one.spark_type) for one in found] == [("ID", "id", "bigint")]
    for name, kind in [("id", IntegerType()), ("raw", StringType()), ("none", StringType())]:
        with pytest.raises(RequestError):
            asked_for(fields, StructType().add(name, kind))
