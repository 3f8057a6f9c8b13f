"""Ranges of ids; reading itself is `test_batch_db.py`."""

import os

import pymysql
import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.source.batch import id_ranges, told_apart, told_plainly


@pytest.mark.parametrize(
    ("low", "high", "count"), [(1, 10, 3), (-5, 5, 4), (7, 7, 9), (0, 2**64 - 1, 2)]
)
def test_ranges_take_each_id_once_also_beyond_the_bounds(low, high, count):
    found = id_ranges(str(low), str(high), count)
    assert 1 <= len(found) <= count
    for ident in {low - 1, low, (low + high) // 2, high, high + 1}:
        conditions = (one.replace("AND", "and") or "True" for one in found)
        assert sum(eval(condition, {"id": ident}) for condition in conditions) == 1


def test_without_whole_numbers_there_is_one_range():
    assert id_ranges(None, None, 4) == [""]
    assert id_ranges("a", "b", 4) == [""]


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ([2013], r"shard -80 of 'ks' broke off.*run it again"),
        # Of a CHECK, of JSON, a NULL, a range, a length, a type, a trigger: no outage to wait for, nor what follows.
        (
            [4025, 3140, 3819, 1048, 1264, 1406, 1292, 1366, 1416, 1644, 1690],
            r"'ks' refuses a row: .*correct the data",
        ),
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


@pytest.mark.parametrize(
    ("name", "error", "is_hidden"),
    [
        ("PYTHON_WORKER_FACTORY_SECRET", RequestError("ks has no shard '-8'"), True),
        ("PYTHON_WORKER_FACTORY_SOCK_DIR", RequestError("ks has no shard '-8'"), True),
        # What nobody foresaw keeps its trace, and so do others' errors outside of a worker.
        ("PYTHON_WORKER_FACTORY_SECRET", ZeroDivisionError(), False),
        ("ANYTHING", RequestError("no"), False),
    ],
)
def test_a_worker_that_ends_with_a_sentence_sends_no_trace(monkeypatch, name, error, is_hidden):
    for each in ("PYTHON_WORKER_FACTORY_SECRET", "PYTHON_WORKER_FACTORY_SOCK_DIR"):
        monkeypatch.delenv(each, raising=False)
    # What the code sets is taken back in the end.
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")
    monkeypatch.setenv(name, "x")
    with pytest.raises(type(error)), told_plainly():
        raise error
    assert (os.environ["SPARK_HIDE_TRACEBACK"] == "1") is is_hidden
