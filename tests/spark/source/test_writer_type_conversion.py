"""Only types are taken whose every value the server keeps, and moments are sent in UTC."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pyspark import cloudpickle
from pyspark.sql import types as t

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.source.writer import converter


def test_types_that_fit_are_taken():
    assert converter("c", t.LongType(), "bigint(20)")(7) == 7
    assert converter("c", t.BooleanType(), "bit(1)")(True) == 1
    assert converter("c", t.DecimalType(10, 2), "decimal(12,2)")(7) == 7
    assert converter("c", t.IntegerType(), "decimal(12,2)")(7) == 7
    assert converter("c", t.StringType(), "json")("{}") == "{}"
    assert converter("c", t.BinaryType(), "varbinary(3)")(bytearray(b"a")) == b"a"
    assert converter("c", t.BinaryType(), "binary(3)")(bytearray(b"abc")) == b"abc"
    with pytest.raises(JobError, match="add zeros to b'a': bring all 3 bytes"):
        converter("c", t.BinaryType(), "binary(3)")(b"a")


def test_types_that_would_be_rounded_cut_or_guessed_are_refused():
    for kind, mysql_types in [
        (t.DoubleType(), ["bigint(20)", "decimal(10,2)", "float"]),
        (t.DecimalType(10, 3), ["decimal(12,2)"]),
        (t.LongType(), ["double"]),
        (t.StringType(), ["int(11)", "datetime", "varbinary(3)"]),
        (t.TimestampType(), ["datetime(6)", "date"]),
        (t.TimestampNTZType(), ["timestamp(6)"]),
        (t.ArrayType(t.LongType()), ["json"]),
    ]:
        for mysql_type in mysql_types:
            with pytest.raises(RequestError, match="cast it"):
                converter("c", kind, mysql_type)


def test_a_moment_is_sent_in_utc_with_the_digits_that_the_column_has():
    at = datetime(2024, 1, 1, 1, 0, 0, 120000, timezone(timedelta(hours=2)))
    assert converter("c", t.TimestampType(), "timestamp(2)")(at) == "2023-12-31 23:00:00.120000"
    with pytest.raises(JobError, match="cut it to 1 digits"):
        converter("c", t.TimestampType(), "timestamp(1)")(at)
    written = converter("c", t.TimestampType(), "timestamp")(datetime(1970, 1, 2, tzinfo=UTC))
    assert written == "1970-01-02 00:00:00.000000"
    assert converter("c", t.TimestampNTZType(), "datetime")(
        datetime.fromisoformat("0070-01-02")
    ) == ("0070-01-02 00:00:00.000000")


def test_a_value_that_a_server_would_take_for_another_one_is_refused():
    for kind, mysql_type, kept, refused in [
        (t.IntegerType(), "year(4)", (0, 1901, 2155), (1, 70, 99)),
        (t.StringType(), "enum('a','7')", ("a", "A", "7"), ("1", " 2")),
        (t.StringType(), "set('a','b')", ("a,b", ""), ("3",)),
        (t.StringType(), "time", ("-10:00:00", "10:00:00.000"), ("10:00:00.5",)),
        (t.StringType(), "varchar(3)", ("é  ", ""), ("ab  ", "abcd")),
        (t.FloatType(), "float(7,2)", (0.5, 1.100000023841858, -3.0), (1.125, 1e-9)),
        (t.IntegerType(), "double(7,2)", (1,), ()),
        (t.FloatType(), "double(7,2)", (0.5,), (1.100000023841858,)),
        (t.StringType(), "time(6)", ("10:00:00.123456",), ("10:00:00.1234567",)),
    ]:
        # As Spark sends it to the executors.
        write = cloudpickle.loads(cloudpickle.dumps(converter("c", kind, mysql_type)))
        assert [write(value) for value in kept] == [*kept]
        for value in refused:
            with pytest.raises(JobError, match=f"'c': {mysql_type[:3]}"):
                write(value)
