"""Which values a column takes, and as what."""

import datetime as dt
from decimal import Decimal

import pytest
from pyspark import cloudpickle

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.fitting import MISFITS, as_sent, matched, sender
from streamfrom.spark.table_schema import Field
from tests.cases import cases


ID = {"mysql_type": "bigint(20)", "takes_null": False, "is_required": True}


def target(name="c", **more):
    return Field(name, name, **({"mysql_type": "int(11)", "spark_type": "bigint"} | more))


def tried(mysql_type, values):
    """Return what is sent of each value, or False where it does not fit."""
    # As Spark sends it to the executors.
    send = cloudpickle.loads(cloudpickle.dumps(sender(target(mysql_type=mysql_type))))

    def sent(value):
        try:
            return send(value)
        except JobError:
            return False

    return [sent(value) for value in values]


def written(text):
    """Return the values of a line, in which D(…) is a decimal and T(…) a moment."""
    names = {"D": Decimal, "T": dt.datetime.fromisoformat, "Y": dt.date.fromisoformat}
    return eval(text, {"__builtins__": {}}, names)


@cases(mysql_type=str, values=written, sent=written)
def test_a_value_is_sent_as_it_is_or_not_at_all(mysql_type, values, sent):
    found = tried(mysql_type, values)
    assert found == sent
    assert [*map(type, found)] == [*map(type, sent)]


def test_what_does_not_fit_says_what_to_do():
    with pytest.raises(
        JobError, match=r"^column 'c': decimal\(4,2\) cannot hold '0.125' as it is: correct"
    ):
        sender(target(mysql_type="decimal(4,2)"))(0.125)
    with pytest.raises(
        JobError, match=r"^column 'id': bigint\(20\) NOT NULL cannot hold 'NULL'"
    ):
        sender(target("id", **ID))(None)
    assert sender(target())(None) is None
    with pytest.raises(RequestError, match="cannot be fed into 'c', which is geometry"):
        sender(target(mysql_type="geometry"))


@pytest.mark.spark
def test_rows_are_sent_with_times_in_utc_whatever_the_zone_of_the_session_is(spark):
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        # An hour that this day does not have there, and one that another has twice.
        frame = spark.sql(
            "SELECT timestamp_ntz'2026-03-29 02:30:00' AS a, timestamp'2026-10-25T01:30:00Z' AS b,"
            " struct(map('k', 1) AS m) AS c, 1e-7BD AS `d.``e`, x'ff' AS f"
        )
        kinds = ("datetime", "timestamp", "json", "decimal(20,10)", "blob")
        targets = [target(str(place), mysql_type=kind) for place, kind in enumerate(kinds)]
        sent = as_sent(frame, dict(zip(frame.columns, targets, strict=True)), "")
        assert [[*row] for row in sent.drop(MISFITS).collect()] == [
            [
                "2026-03-29 02:30:00",
                "2026-10-25 01:30:00",
                '{"m":{"k":1}}',
                Decimal("1e-7"),
                b"\xff",
            ]
        ]
        with pytest.raises(RequestError, match="'c' is struct: only a json column"):
            as_sent(frame, {"c": targets[0]}, "")
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


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


@pytest.mark.spark
def test_misfits_are_counted_with_an_example(spark):
    frame = spark.createDataFrame(
        [("1", 1), ("x", 1), (None, 1), ("y", 300)], "c string, d int"
    )
    found = {"c": target(takes_null=False), "d": target("d", mysql_type="tinyint(4)")}
    with pytest.raises(RequestError) as told:
        as_sent(frame.coalesce(1), found, "Nothing was written")
    assert str(told.value) == (
        "3 values of 'c' do not fit int(11) NOT NULL, such as 'x'; 1 values of 'd' do not fit tinyint(4),"
        " such as '300'. Nothing was written"
    )
