"""Ranges of ids; reading itself is `test_batch_db.py`."""

import pymysql
import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import JobError
from streamfrom.spark.source.batch import id_ranges, told_apart


@pytest.mark.parametrize(
    ("low", "high", "count"), [(1, 10, 3), (-5, 5, 4), (7, 7, 9), (0, 2**64 - 1, 2)]
)
def test_ranges_take_each_id_once_also_beyond_the_bounds(low, high, count):
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
    assert id_ranges(None, None, 4) == [""]
    assert id_ranges("a", "b", 4) == [""]


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ([2013], r"shard -80 of 'ks' broke off.*run it again"),
        # Of a CHECK, of JSON, a NULL, a range, a length: no outage to wait for, nor what follows.
        ([4025, 3140, 3819, 1048, 1264, 1406], r"'ks' refuses a row: .*correct the data"),
        ([1044, 1142, 1227, 1235], r"'ks' refuses that: .*ask the operator of the proxy"),
        ([1054, 1146], r"'ks' has changed: .*load the table again"),
    ],
)
def test_what_a_driver_raises_says_where_and_what_to_do(numbers, told):
    for number in numbers:
        packet = b"\xff" + number.to_bytes(2, "little") + b"#HY000no"
        with (
            pytest.raises(JobError, match=told),
            told_apart(Endpoint("h", 1, "u", "ks"), "-80"),
        ):
            pymysql.err.raise_mysql_exception(packet)
