"""A condition leaves out nothing that Spark would keep, and values are never part of the SQL."""

from dataclasses import replace
from decimal import Decimal

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    In,
    IsNotNull,
    IsNull,
    LessThanOrEqual,
    Not,
    StringContains,
)

from streamfrom.spark.source.batch import Condition, TablePartition, condition_of, narrowed
from streamfrom.spark.table_schema import Field, exact_type


@pytest.fixture
def condition():
    kinds = {
        "id": "bigint", "big": "bigint unsigned", "word": "varchar(9)", "doc": "json", "kind": "enum('a')",
        "raw": "varbinary(9)", "day": "date", "odd`name": "int", "50%s": "int", "bits": "bit(8)", "x": "double",
    }  # fmt: skip
    fields = {name: Field(name, name, kind, exact_type(kind)) for name, kind in kinds.items()}
    return lambda given: condition_of(given, fields)


def test_numbers_are_exact(condition):
    assert condition(EqualTo(("id",), 5)) == Condition("`id` = %s", (5,))
    assert condition(LessThanOrEqual(("big",), Decimal(7))) == Condition(
        "`big` <= %s", (Decimal(7),)
    )
    assert condition(Not(In(("id",), (1, 2)))) == Condition("NOT (`id` IN (%s, %s))", (1, 2))
    assert condition(EqualTo(("odd`name",), 5)).sql == "`odd``name` = %s"
    assert condition(EqualTo(("50%s",), 5)).sql == "`50%%s` = %s"


def test_nulls_are_asked_for_except_where_spark_sees_more_of_them(condition):
    assert condition(IsNull(("word",))).sql == "`word` IS NULL"
    assert condition(IsNotNull(("id",))).sql == "`id` IS NOT NULL"
    assert condition(IsNull(("day",))) is None


def test_strings_are_looked_for_and_looked_at_again(condition):
    found = condition(EqualTo(("word",), "a' OR 1=1 -- %s"))
    assert (found.sql, found.values) == ("`word` = %s", ("a' OR 1=1 -- %s",))
    assert not found.is_exact
    assert condition(In(("raw",), (b"\x00",))).is_exact is False
    assert condition(Not(EqualTo(("word",), "a"))) is None


def test_what_is_unsure_is_left_to_spark(condition):
    for name, value in [
        *(("word", "ü"), ("doc", "1"), ("kind", "a"), ("bits", 1), ("x", 0.1), ("id", True)),
        ("id", Decimal("12345678901234567890.01234568")),  # Spark rounded its end away
        ("nothing", 1),
    ]:
        assert condition(EqualTo((name,), value)) is None
    for kind in (GreaterThan, StringContains):
        assert condition(kind(("word",), "a")) is None
    assert condition(In(("id",), (1, None))) is None
    assert condition(EqualTo(("doc", "part"), 1)) is None


def test_a_part_is_narrowed_and_its_own_condition_kept():
    part = TablePartition("-80", "(word LIKE '5%%')")
    conditions = [Condition("`id` > %s", (5,)), Condition("`big` IS NULL")]
    assert narrowed(part, conditions) == replace(
        part, condition="(word LIKE '5%%') AND `id` > %s AND `big` IS NULL", values=(5,)
    )
    assert narrowed(part, []) is part
