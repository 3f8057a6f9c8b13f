"""The batch reader that gets a query's filters as well, if the session switches that on.

Spark keeps what a reader made of pushed filters with the DataFrame, and uses it for the next query on that too, whatever its filters
are, and for all branches of a join of the DataFrame with itself (4.1 to 4.3). So this is for DataFrames that one query uses, and who
switches `spark.sql.python.filterPushdown.enabled` on says that theirs are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from streamfrom.spark.source.batch import BatchReader, TablePartition
from streamfrom.spark.source.filters import Condition, condition_of


if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

    from streamfrom.spark.source.options import Options
    from streamfrom.spark.table_schema import Field


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
