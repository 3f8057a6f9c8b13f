"""Filters narrow a part beside what its user asked for."""

from dataclasses import replace

from streamfrom.spark.source.batch import TablePartition
from streamfrom.spark.source.filter_pushdown import narrowed
from streamfrom.spark.source.filters import Condition


def test_a_part_is_narrowed_and_its_own_condition_kept():
    part = TablePartition("-80", "(word LIKE '5%')")
    conditions = [Condition("`id` > %s", (5,)), Condition("`big` IS NULL")]
    assert narrowed(part, conditions) == replace(
        part, condition="(word LIKE '5%%') AND `id` > %s AND `big` IS NULL", values=(5,)
    )
    assert narrowed(part, []) is part
