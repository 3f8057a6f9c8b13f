"""What a name means in the FROM of one SELECT."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from streamfrom.sqlparse_ext.selects.sources import Reference


if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp


class Scope:
    """The FROM of one SELECT: which name means which source.

    Attributes:
        outer: the scope of the SELECT around this one; None for an outermost SELECT.
        names: what each alias means: the number of a table, the columns of a derived table that
            equal columns of its tables, or None for a CTE and a derived table of unknown columns.
        numbers: the numbers of the tables in this FROM.
        inner: the numbers of the tables in its derived tables.
        shared: the columns of USING, each with the tables that have it.
    """

    def __init__(self, outer: Scope | None) -> None:
        self.outer = outer
        self.names: dict[str, int | Mapping[str, Reference] | None] = {}
        self.numbers: set[int] = set()
        self.inner: set[int] = set()
        # The first of these tables has no NULLs from an outer join.
        self.shared: dict[str, list[int]] = defaultdict(list)

    def add(self, name: str, number: int | None) -> None:
        """Add the table *number* under *name*; None for a derived table or a CTE."""
        self.names[name] = number
        if number is not None:
            self.numbers.add(number)

    def find(self, column: exp.Column) -> Reference | None:
        """Return the table and column that this name means; None where that is not certain."""
        name, qualifier = column.name.lower(), column.table.lower()
        if not qualifier:
            # Of several tables any may have the column; a single one must have it.
            if self.shared[name]:
                return Reference(self.shared[name][0], name)
            (only,) = self.names.values() if len(self.names) == 1 else (None,)
            return Reference(only, name) if isinstance(only, int) else None
        scope: Scope | None = self
        while scope is not None:
            if qualifier in scope.names:
                found = scope.names[qualifier]
                if isinstance(found, int):
                    return Reference(found, name)
                return None if found is None else found.get(name)
            scope = scope.outer
        return None
