"""Spark's filters as SQL conditions, and the batch reader that gets them if the session switches that on.

A condition never leaves out a row that Spark would keep. Where it also keeps none that Spark would
leave out it is *exact*; otherwise Spark looks again. Exact are whole numbers and decimals. Strings and binary are only
asked for being equal, since a server's collation may take more for equal, and never fewer; whatever is
unsure is left to Spark altogether.

Spark keeps what a reader made of pushed filters with the DataFrame, and uses it for the next query on that too, whatever its filters
are, and for all branches of a join of the DataFrame with itself (4.1 to 4.3). So this is for DataFrames that one query uses, and who
switches `spark.sql.python.filterPushdown.enabled` on says that theirs are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from streamfrom.spark.endpoint import quoted
from streamfrom.spark.source.batch import BatchReader, TablePartition


if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

    from streamfrom.spark.source.options import Options
    from streamfrom.spark.table_schema import Field

_ROUNDED_DIGITS: Final = 28  # the precision of Python's default context
_COMPARISONS: Final = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """SQL with a mark for each of *values*."""

    sql: str
    values: tuple[Any, ...] = ()
    is_exact: bool = True


def condition_of(given: "Filter", fields: "Mapping[str, Field]") -> Condition | None:
    """Return the condition for a filter over *fields*, by name; None leaves it to Spark."""
    if isinstance(given, Not):
        inner = condition_of(given.child, fields)
        # The opposite of a condition that takes too much would take too little.
        if inner is None or not inner.is_exact or isinstance(given.child, Not):
            return None
        return Condition(f"NOT ({inner.sql})", inner.values)
    path: tuple[str, ...] = getattr(given, "attribute", ())
    field = fields.get(path[0]) if len(path) == 1 else None
    if field is None:
        return None
    name = quoted(field.column)
    if isinstance(given, IsNull | IsNotNull):
        # Dates that no calendar has are NULL for Spark alone.
        if field.spark_type.startswith(("date", "timestamp")):
            return None
        return Condition(f"{name} IS {'NOT ' if isinstance(given, IsNotNull) else ''}NULL")
    if isinstance(given, In):
        values = tuple(value for value in given.value if value is not None)
        # Spark's NOT IN with a NULL among them keeps nothing.
        if not values or len(values) < len(given.value):
            return None
        marks = f"{name} IN ({', '.join(['%s'] * len(values))})"
        return _checked(field, marks, values, is_equality=True)
    for kind, comparison in _COMPARISONS.items():
        if isinstance(given, kind):
            equal = kind is EqualTo
            value: Any = getattr(given, "value", None)
            return _checked(field, f"{name} {comparison} %s", (value,), is_equality=equal)
    return None


def _checked(
    field: "Field", sql: str, values: tuple[Any, ...], *, is_equality: bool
) -> Condition | None:
    is_number = field.spark_type == "bigint" or field.spark_type.startswith("decimal")
    if is_number and field.base not in {"bit", "year"}:
        return Condition(sql, values) if all(map(_is_given_exactly, values)) else None
    if not is_equality:
        return None
    # A character that the column's character set lacks makes some servers refuse the comparison.
    if field.is_text and all(isinstance(one, str) and one.isascii() for one in values):
        return Condition(sql, values, is_exact=False)
    if field.base in {"varbinary", "blob"} and all(
        isinstance(one, bytes | bytearray) for one in values
    ):
        return Condition(sql, tuple(map(bytes, values)), is_exact=False)
    return None


def _is_given_exactly(value: Any) -> bool:
    """Say whether this is the number that the query has: Spark rounds decimals to so many digits on the way."""
    if isinstance(value, Decimal):
        return len(value.as_tuple().digits) < _ROUNDED_DIGITS
    return isinstance(value, int) and not isinstance(value, bool)


class FilteringReader(BatchReader):
    """Reads of a message table what a query's filters keep, or a little more."""

    def __init__(self, options: "Options", fields: "Sequence[Field]") -> None:
        super().__init__(options, fields)
        self.conditions: list[Condition] = []

    def pushFilters(self, filters: "list[Filter]") -> "Iterable[Filter]":
        """Take what a server can answer, and give back what Spark must look at again."""
        by_name = {field.name: field for field in self.fields}
        for one in filters:
            condition = condition_of(one, by_name)
            if condition is not None:
                self.conditions.append(condition)
            if condition is None or not condition.is_exact:
                yield one

    def partitions(self) -> "Sequence[TablePartition]":
        """Return the parts of a `BatchReader`, narrowed."""
        return [narrowed(part, self.conditions) for part in super().partitions()]


def narrowed(part: "TablePartition", conditions: "Sequence[Condition]") -> "TablePartition":
    """Return the part of *part* that fulfils *conditions* too."""
    if not conditions:
        return part
    texts = [part.condition.replace("%", "%%")] if part.condition else []
    texts += [one.sql for one in conditions]
    values = tuple(value for one in conditions for value in one.values)
    return replace(part, condition=" AND ".join(texts), values=values)
