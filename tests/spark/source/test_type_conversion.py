"""Only types are taken whose every value the server keeps, and moments are sent in UTC."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pyspark.sql import types as t
from pyspark.sql.types import BinaryType, TimestampType

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.source.type_conversion import converter


def test_types_that_fit_are_taken():
    assert converter("c", t.LongType(), "bigint(20)")(7) == 7
    assert converter("c", t.BooleanType(), "bit(1)")(True) == 1
    assert converter("c", t.DecimalType(10, 2), "decimal(12,2)")(7) == 7
    assert converter("c", t.IntegerType(), "decimal(12,2)")(7) == 7
    assert converter("c", t.StringType(), "json")("{}") == "{}"
    assert converter("c", t.BinaryType(), "varbinary(3)")(bytearray(b"a")) == b"a"
    assert converter("c", t.BinaryType(), "binary(3)")(bytearray(b"abc")) == b"abc"


def test_bytes_to_which_a_server_would_add_zeros_are_refused():
    with pytest.raises(JobError, match="add zeros to b'a': bring all 3 bytes"):
        converter("c", BinaryType(), "binary(3)")(b"a")


def test_types_that_would_be_rounded_cut_or_guessed_are_refused():
    for kind, mysql_type in [
        (t.DoubleType(), "bigint(20)"),
        (t.DoubleType(), "decimal(10,2)"),
        (t.DoubleType(), "float"),
        (t.DecimalType(10, 3), "decimal(12,2)"),
        (t.LongType(), "double"),
        (t.StringType(), "int(11)"),
        (t.StringType(), "datetime"),
        (t.StringType(), "varbinary(3)"),
        (t.TimestampType(), "datetime(6)"),
        (t.TimestampNTZType(), "timestamp(6)"),
        (t.TimestampType(), "date"),
        (t.ArrayType(t.LongType()), "json"),
    ]:
        with pytest.raises(RequestError, match="cast it"):
            converter("c", kind, mysql_type)


def test_a_moment_is_sent_in_utc_with_the_digits_that_the_column_has():
    at = datetime(2024, 1, 1, 1, 0, 0, 120000, timezone(timedelta(hours=2)))
    assert converter("c", TimestampType(), "timestamp(2)")(at) == "2023-12-31 23:00:00.12"
    with pytest.raises(JobError, match="cut it to 1 digits"):
        converter("c", TimestampType(), "timestamp(1)")(at)
    assert (
        converter("c", TimestampType(), "timestamp")(datetime(1970, 1, 2, tzinfo=UTC))
        == "1970-01-02 00:00:00"
    )
