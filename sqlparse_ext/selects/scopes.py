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
        outer: the scope of the SELECT around it.
        names: by alias, a source, or what the columns of a derived table are that tie it to a
            shard; None for one of which nothing is known, and for a CTE.
        numbers: of its own sources. inner: those in such derived tables.
        shared: the columns of USING, and which sources have them.
    """

    def __init__(self, outer: Scope | None) -> None:
        self.outer = outer
        self.names: dict[str, int | Mapping[str, Reference] | None] = {}
        self.numbers: set[int] = set()
        self.inner: set[int] = set()
        # The first one's values are never missing.
        self.shared: dict[str, list[int]] = defaultdict(list)

    def add(self, name: str, number: int | None) -> None:
        """Add a source, or None for what is none."""
        self.names[name] = number
        if number is not None:
            self.numbers.add(number)

    def find(self, column: exp.Column) -> Reference | None:
        """Return which source's column this is, as far as it is certain."""
        name, qualifier = column.name.lower(), column.table.lower()
        if not qualifier:
            # Of several tables any may have it; an only one has it if it is what matters to us.
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
