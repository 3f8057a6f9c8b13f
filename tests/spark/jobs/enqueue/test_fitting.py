"""Which values a column takes, and as what."""

import ast
import datetime
from decimal import Decimal

import pytest

from streamfrom.spark.endpoint import TableColumn
from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.enqueue.fitting import fitted, matched, misfits
from tests.cases import cases


pytestmark = pytest.mark.spark

ID = {"mysql_type": "bigint(20)", "takes_null": False, "is_required": True}


def target(name="c", **more):
    return TableColumn(name, **({"mysql_type": "int(11)"} | more))


def tried(spark, mysql_type, values, kind="string"):
    """Return the value as the server is sent it, or False where it does not fit."""
    frame = spark.createDataFrame([(value,) for value in values], f"c {kind}")
    fit = fitted(frame, "c", target(mysql_type=mysql_type))
    rows = frame.select(fit.value.alias("value"), fit.fits.alias("fits")).collect()
    return [row.value if row.fits else False for row in rows]


@cases(mysql_type=str, values=ast.literal_eval, sent=ast.literal_eval)
def test_a_value_is_sent_as_it_is_or_not_at_all(spark, mysql_type, values, sent):
    assert tried(spark, mysql_type, values) == sent


def test_values_with_a_type_of_their_own_fit_as_well(spark):
    noon = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
    assert tried(spark, "datetime", [noon], "timestamp")[0].endswith(":00:00")
    assert tried(spark, "date", [noon.date()], "date") == ["2026-01-02"]
    assert tried(spark, "date", [noon], "timestamp") == [False]
    assert tried(spark, "tinyint(1)", [True, None], "boolean") == [1, None]
    amounts = tried(spark, "decimal(4,2)", ["12.34", "12.345", "123.4"])
    assert amounts == [Decimal("12.34"), False, False]
    assert tried(spark, "bit(1)", [True, False, None], "boolean") == [1, 0, None]
    bits = [bytearray(b"\1\2"), bytearray(b"\2\0"), bytearray(9)]
    assert tried(spark, "bit(9)", bits, "binary") == [258, False, False]
    assert tried(spark, "varbinary(2)", [12, 123], "int") == [b"12", False]
    assert tried(spark, "blob", [bytearray(b"\xff")], "binary") == [b"\xff"]
    assert tried(spark, "tinytext", ["x" * 255, "x" * 256]) == ["x" * 255, False]
    nested = tried(spark, "json", [({"a": 1},)], "struct<m: map<string, int>>")
    assert nested == ['{"m":{"a":1}}']


def test_a_timestamp_is_sent_in_utc_whatever_the_zone_of_the_session_is(spark):
    noons = [datetime.datetime(2026, month, 2, 12, tzinfo=datetime.UTC) for month in (1, 7)]
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        sent = tried(spark, "timestamp", noons, "timestamp")
        assert sent == ["2026-01-02 12:00:00", "2026-07-02 12:00:00"]
        # An hour that this day does not have there.
        night = datetime.datetime.fromisoformat("2026-03-29T02:30:00")
        assert tried(spark, "datetime", [night], "timestamp_ntz") == ["2026-03-29 02:30:00"]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_what_no_column_takes_is_refused(spark):
    with pytest.raises(RequestError, match="only a json column"):
        tried(spark, "text", [[1]], "array<int>")
    with pytest.raises(RequestError, match="cannot be fed into 'c', which is geometry"):
        tried(spark, "geometry", ["x"])


def test_columns_are_matched_by_name_and_what_is_wrong_is_named():
    table = [
        target("id", **ID),
        target("epoch"),
        target("Body", takes_null=False, is_required=True),
        target("made", is_generated=True),
    ]
    found = matched(["ID", "body"], table, [])
    assert [column.name for column in found.values()] == ["id", "Body"]
    for names, told in (
        (["id", "bodi"], "'bodi' is not in the table, which has id, epoch, Body, made"),
        (["id", "body", "epoch"], "'epoch' is not for new messages"),
        (["id", "body", "made"], "'made' is not for new messages"),
        (["body", "Body"], "two columns for 'Body'"),
        (["id"], "'Body' takes no NULL and has no default"),
    ):
        with pytest.raises(RequestError, match=told):
            matched(names, table, ["id"])


def test_misfits_are_counted_with_an_example(spark):
    frame = spark.createDataFrame([("1",), ("x",), (None,), ("y",)], "c string")
    needed = fitted(frame, "c", target(takes_null=False))
    (told,) = misfits(frame, [("c", needed)])
    assert told == "3 values of 'c' do not fit int(11) NOT NULL, such as 'x'"
    assert misfits(frame, []) == []
