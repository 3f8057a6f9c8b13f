"""Ids and times that a retry gives again."""

from collections import Counter

import pytest
from pyspark.sql import functions as F

from streamfrom.spark.jobs.enqueue.identity import clashes, derived_id, with_due


pytestmark = pytest.mark.spark

S = 10**9


def test_an_id_is_made_of_values_however_they_are_typed_or_divided(spark):
    typed = spark.createDataFrame([(1, "a"), (2, None), (None, "2")], "n int, t string")
    texts = typed.select(F.col("n").cast("string"), "t").repartition(3)
    for is_integer in (True, False):
        one, other = (
            {
                tuple(map(str, row[:2])): row[2]
                for row in frame.select(
                    "*", derived_id([F.col("n"), F.col("t")], is_integer=is_integer)
                ).collect()
            }
            for frame in (typed, texts)
        )
        assert one == other
        assert len(set(one.values())) == 3
        if is_integer:
            assert all(0 <= value < 2**63 for value in one.values())


def test_rows_that_differ_under_one_id_clash(spark):
    rows = [(1, "a"), (2, "b"), (3, None), (3, "x")]
    frame = spark.createDataFrame(rows, "id int, body string")
    assert [row.id for row in clashes(frame).collect()] == [3]


def test_messages_become_due_all_the_time_and_the_same_however_they_are_divided(spark):
    def due(parts):
        frame = with_due(spark.range(1000).repartition(parts), 7 * S, 4)
        return {row.id: row.time_next for row in frame.collect()}

    times = due(1)
    quarters = Counter((at - 7 * S) * 4 // (250 * S) for at in times.values())
    assert sorted(quarters) == [0, 1, 2, 3]
    assert all(200 < many < 300 for many in quarters.values())
    assert due(3) == times
    at_once = with_due(spark.range(3), 7 * S, None).collect()
    assert {row.time_next for row in at_once} == {7 * S}
    assert with_due(spark.range(0), 7 * S, 4).count() == 0
