"""Find statements that may write rows of tables that their text does not name. Pure.

A view hides its table. Only the definitions of triggers, cascading foreign keys, stored functions, procedures and blocks
show which rows they write. After such a statement, any table of its shard may have
changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final

from streamfrom.sqlparse_ext.statements import Kind, Shape, TableRef, Uses
from streamfrom.sqlparse_ext.text.tokens import statement_tokens, unquote
from streamfrom.sqlparse_ext.writes.completion import NO_STRUCTURE


_INSERTS: Final = frozenset({Kind.INSERT, Kind.REPLACE, Kind.LOAD})
WRITES: Final = _INSERTS | {Kind.UPDATE, Kind.DELETE}
_SEVERAL_TABLES: Final = Uses.JOIN | Uses.CTE
# MariaDB's BEGIN NOT ATOMIC, IF, LOOP and similar, and SET STATEMENT … FOR.
_MAY_HOLD_OTHERS: Final = frozenset({Kind.OTHER, Kind.SET})
_SHAPES_MAX: Final = 8192


class HiddenWrites:
    """The objects of a database through which statements write rows of tables that they do not name.

    schemas: the names of the database; other databases' objects are not known.
    tables: views, tables with triggers, and parents of foreign keys that cascade.
    queues: the message tables.
    functions: stored functions, and packages of them.
    update_triggered: tables with triggers that fire on UPDATE.
    hides_triggers: triggers cannot be seen, so any table may have one.
    by: returns whether a statement of a shape may write to tables that it does not name.
    """

    def __init__(
        self,
        schemas: Iterable[str] = (),
        tables: Iterable[str] = (),
        queues: Iterable[str] = (),
        functions: Iterable[str] = (),
        update_triggered: Iterable[str] = (),
        *,
        hides_triggers: bool = False,
    ) -> None:
        self.hides_triggers = hides_triggers
        self._schemas = frozenset(map(str.lower, schemas))
        self._tables = frozenset(map(str.lower, tables))
        self._queues = frozenset(map(str.lower, queues))
        self._functions = frozenset(map(str.lower, functions))
        self._update_triggered = frozenset(map(str.lower, update_triggered))
        # Called with a shape at each execution, with the same result each time.
        self.by = lru_cache(maxsize=_SHAPES_MAX)(self._by)

    def by_table(self, name: str) -> bool:
        """Return whether a write to the table *name* may write to other tables."""
        return self.hides_triggers or name.lower() in self._tables

    def has_update_trigger(self, name: str) -> bool:
        """Return whether a trigger may see updates of the table *name*."""
        return self.hides_triggers or name.lower() in self._update_triggered

    def _by(self, shape: Shape) -> bool:
        """Return whether a statement of this *shape* may write to tables that it does not name."""
        if runs_unseen(shape):
            return True
        if self._functions and not self._functions.isdisjoint(called(shape)):
            return True
        if shape.kind not in WRITES:
            return False
        if self.hides_triggers or shape.uses & NO_STRUCTURE or not shape.tables:
            return True
        if shape.kind in _INSERTS or not shape.uses & _SEVERAL_TABLES:
            return self._writes_more(shape.tables[:1], self._tables)
        # The text alone does not show which of the tables it writes.
        return self._writes_more(shape.tables, self._tables | self._queues)

    def _writes_more(self, tables: Iterable[TableRef], names: Collection[str]) -> bool:
        return any(
            table.name.lower() in names
            or (table.schema is not None and table.schema.lower() not in self._schemas)
            for table in tables
        )


NOTHING_HIDDEN: Final = HiddenWrites()


def runs_unseen(shape: Shape) -> bool:
    """Return whether a statement runs others, of which nothing is known."""
    match shape.kind:
        case Kind.CALL:
            return True
        case Kind.XA:
            # The transaction may be another session's.
            return shape.words[:1] == ("COMMIT",)
        case Kind.EXPLAIN:
            return "ANALYZE" in (shape.verb, *shape.words[:3])
        case _:
            return shape.verb == "BINLOG" or (
                shape.kind in _MAY_HOLD_OTHERS and bool(shape.uses & Uses.UNPARSED)
            )


@lru_cache(maxsize=_SHAPES_MAX)
def called(shape: Shape) -> frozenset[str]:
    """Return the names before a parenthesis, in lower case: functions, and the packages or databases that they are in."""
    tokens = statement_tokens(shape.template)
    names: set[str] = set()
    for place, token in enumerate(tokens):
        if token.key != "(":
            continue
        at = place - 1
        while at >= 0 and tokens[at].is_name:
            names.add(unquote(tokens[at], shape.template).lower())
            if at < 2 or tokens[at - 1].key != ".":
                break
            at -= 2
    return frozenset(names)


def cascading(
    parents: Mapping[str, Collection[str]], reaching: Collection[str]
) -> frozenset[str]:
    """Return the parents of foreign keys whose cascades lead to one of *reaching*. parents: by the table that refers to them."""
    found: set[str] = set()
    pending = [*reaching]
    while pending:
        more = set(parents.get(pending.pop(), ())) - found
        found |= more
        pending += more
    return frozenset(found)
