"""The checksum of rows: the same however they lie, another for any other rows."""

from typing import Any

import pytest

from streamfrom.spark.jobs.checksum import Checksum, checksums, total


pytestmark = pytest.mark.spark

KINDS = "place int, a string, `b.c` string, d decimal(20,10), e binary, f double"


def of(spark, *rows, parts=1):
    frame = spark.createDataFrame([(0, *row, *[None] * (5 - len(row))) for row in rows], KINDS)
    return checksums(frame.repartition(parts), "place").get(0, Checksum())


def test_no_order_and_no_cut_changes_it(spark):
    one, other = ("x", "y"), ("z", None)
    assert of(spark, one, other) == of(spark, other, one, parts=3)
    assert total({1: of(spark, one), 2: of(spark, other)}) == of(spark, one, other)
    assert total({}) == of(spark) == Checksum(0, 0)


def test_what_looks_alike_side_by_side_differs(spark):
    alike: list[tuple[Any, ...]] = [
        ("ab", "c"),
        ("a", "bc"),
        ("abc", ""),
        ("abc", None),
        (None, "abc"),
        ("", "abc"),
    ]
    alike += [("", "", None, b""), ("", "", None, None), ("", "", None, b"\0")]
    alike += [("", "", None, None, value) for value in (0.1, 0.1 + 2**-56)]
    assert len({of(spark, row) for row in alike}) == len(alike)


def test_columns_that_are_left_out_do_not_count(spark):
    frame = spark.createDataFrame([(1, "a"), (2, "b")], "place int, text string")
    left = frame.withColumn("more", frame.place)
    assert checksums(left, "place", "more") == checksums(frame, "place")
    assert checksums(left, "place") != checksums(frame, "place")
