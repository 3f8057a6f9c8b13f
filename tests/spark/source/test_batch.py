"""Ranges of ids; reading itself is `test_batch_db.py`."""

import pytest


@pytest.mark.parametrize(
    ("low", "high", "count"), [(1, 10, 3), (-5, 5, 4), (7, 7, 9), (0, 2**64 - 1, 2)]
)
def test_ranges_take_each_id_once_also_beyond_the_bounds(low, high, count):
    from streamfrom.spark.source.batch import id_ranges

    found = id_ranges(str(low), str(high), count)
    assert 1 <= len(found) <= count
    for ident in {low - 1, low, (low + high) // 2, high, high + 1}:
        taking = [
            one
            for one in found
            if all(
                ident >= int(part[6:]) if ">=" in part else ident < int(part[5:])
                for part in one.split(" AND ")
                if part
            )
        ]
        assert len(taking) == 1


def test_without_whole_numbers_there_is_one_range():
    from streamfrom.spark.source.batch import id_ranges

    assert id_ranges(None, None, 4) == [""]
    assert id_ranges("a", "b", 4) == [""]


def test_what_a_driver_raises_says_where_and_what_to_do():
    import pymysql

    from streamfrom.spark.endpoint import Endpoint
    from streamfrom.spark.errors import JobError
    from streamfrom.spark.source.batch import told_apart

    with (
        pytest.raises(JobError, match=r"shard -80 of 'ks' broke off.*run it again"),
        told_apart(Endpoint("h", 1, "u", "ks"), "-80"),
    ):
        raise pymysql.err.OperationalError(2013, "Lost connection")


@pytest.mark.parametrize(
    "number",
    [4025, 3140, 3819, 1048, 1264, 1406],
    ids=["check", "json", "check", "null", "range", "long"],
)
def test_a_value_that_a_server_refuses_is_no_outage_to_wait_for(number):
    import pymysql

    from streamfrom.spark.endpoint import Endpoint
    from streamfrom.spark.errors import JobError
    from streamfrom.spark.source.batch import told_apart

    packet = b"\xff" + number.to_bytes(2, "little") + b"#HY000no"
    with (
        pytest.raises(JobError, match=r"'ks' refuses a row: .*correct the data"),
        told_apart(Endpoint("db", 1, "u", "ks"), "-80"),
    ):
        pymysql.err.raise_mysql_exception(packet)


@pytest.mark.parametrize("number", [1044, 1142, 1227, 1235])
def test_a_right_that_is_lacking_is_no_outage_to_wait_for(number):
    import pymysql

    from streamfrom.spark.endpoint import Endpoint
    from streamfrom.spark.errors import JobError
    from streamfrom.spark.source.batch import told_apart

    with (
        pytest.raises(JobError, match=r"'ks' refuses that: .*ask the operator of the proxy"),
        told_apart(Endpoint("db", 1, "u", "ks"), "-80"),
    ):
        raise pymysql.err.OperationalError(number, "no")


@pytest.mark.parametrize("number", [1054, 1146])
def test_a_column_or_table_that_is_gone_is_no_outage_to_wait_for(number):
    import pymysql

    from streamfrom.spark.endpoint import Endpoint
    from streamfrom.spark.errors import JobError
    from streamfrom.spark.source.batch import told_apart

    with (
        pytest.raises(JobError, match=r"'ks' has changed: .*load the table again"),
        told_apart(Endpoint("db", 1, "u", "ks"), "-80"),
    ):
        raise pymysql.err.OperationalError(number, "it is gone")
