"""Plan statements over several tables: joins, subqueries, UNION, INSERT … SELECT.

A statement goes to one shard if the values of all vindex columns lead to the same one. A SELECT goes to
several if each row of its answer comes from one shard alone: all sharded tables are tied to
one of them by their vindex columns, and that one has a part in every row. Reference tables are
on every shard and do not matter here. For a UNION this must hold for each SELECT, and equal rows
must meet on one shard, because a vindex column is among them. Anything else is refused, and left to `planner`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.proxy.routing.plan_scatter import NEVER_MERGED, refuse, scattered_select
from streamfrom.proxy.routing.routes import (
    AnyShard,
    Concatenate,
    OneShard,
    Plan,
    Route,
    WriteParts,
)
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.reading.queries import assigned_columns
from streamfrom.sqlparse_ext.selects.select_ast import ALL, Reference, Source
from streamfrom.sqlparse_ext.statements import Kind, Operand, Shape, Statement, Uses


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Shard
    from streamfrom.proxy.routing.vschema_tables import RowRouting, VschemaTables
    from streamfrom.sqlparse_ext.selects.select_ast import Equality, JoinEqualities

_OF_ROWS_TOGETHER: Final = Uses.AGGREGATE | Uses.GROUP | Uses.LIMIT


class _Sharded(NamedTuple):
    """A source whose rows a vindex distributes, and the values that its vindex column equals."""

    number: int
    rows: RowRouting
    # The vindex type by which equal values are on one shard; None if they need not be.
    equality: str | None
    columns: tuple[Reference, ...]  # the columns of tables, its own first, that have the value
    literals: tuple[tuple[Operand, ...], ...]  # the literals that are the value


class JoinPlanner:
    """The plan of one shape over several tables. Raises Unsupported if no values would let a shard answer the shape.

    Args:
        tables: the tables of the keyspace.
        shape: a SELECT, UPDATE, DELETE, INSERT or REPLACE.
        column_place: the place of the vindex column among the columns of an INSERT … SELECT.
    """

    def __init__(
        self, tables: VschemaTables, shape: Shape, column_place: int | None = None
    ) -> None:
        self._tables = tables
        self._shape = shape
        equalities = _read_ties(shape.template)
        if equalities is None:
            raise Unsupported(
                f"this form of {shape.verb}, whose tables could not be distinguished; name each by AS"
            )
        self._equalities = equalities
        self._sources = self._with_target(equalities, column_place)
        self._check_tables()
        self._pinned = {
            shard
            for source in self._sources
            if (shard := tables.pinned_to(source.table.name)) is not None
        }
        self._columns = {
            number: Reference(number, tables.column(source.table.name))
            for number, source in enumerate(self._sources)
            if self._is_sharded(source.table.name)
        }
        self._sharded = [self._tied(number) for number in self._columns]
        if shape.kind is not Kind.SELECT:
            self._check_written()
        self._anchors = self._find_anchors()

    def plan(self) -> Plan:
        """Return the plan. Raises Unsupported."""
        if not self._anchors and not all(each.literals for each in self._sharded):
            self._refuse()
        return Plan(find=self._find)

    # --- the tables -------------------------------------------------------------------------

    def _with_target(
        self, equalities: JoinEqualities, column_place: int | None
    ) -> list[Source]:
        """Return the sources, followed by the target of an INSERT as one more of them."""
        if column_place is None:
            return equalities.sources
        items = equalities.blocks[0].items if len(equalities.blocks) == 1 else ()
        if column_place >= len(items):
            raise Unsupported(
                f"{self._shape.verb} … SELECT whose vindex column is not among the items; select it"
            )
        # The rows of an INSERT … SELECT must be on the shards that they come from. So the
        # target is one more table of the join, tied by the item that becomes its vindex column.
        target = self._shape.tables[0]
        column = self._tables.column(target.name)
        equal = items[column_place]
        source = Source(target, 0)
        if equal is not None and not self._may_be_null(equalities, equal):
            source.equalities[column] = [equal]
        return [*equalities.sources, source]

    def _may_be_null(self, equalities: JoinEqualities, equal: Equality) -> bool:
        """Return whether an item is NULL in some row; the server may turn that into a value of another shard."""
        if not isinstance(equal, Reference):
            return False
        # Without GROUP BY there is a row of aggregates even if no row was found.
        is_made_of_none = (
            self._shape.uses & Uses.AGGREGATE and not equalities.blocks[0].is_grouped
        )
        return bool(is_made_of_none) or not equalities.sources[equal.source].is_certain

    def _check_tables(self) -> None:
        """Raise Unsupported unless the equalities are about the statement's tables."""
        known = {(source.table.schema, source.table.name) for source in self._sources}
        if known != {(table.schema, table.name) for table in self._shape.tables}:
            raise Unsupported(f"this form of {self._shape.verb} in a sharded keyspace")

    def _is_sharded(self, name: str) -> bool:
        return not self._tables.is_reference(name) and self._tables.get(name).pinned is None

    def _check_written(self) -> None:
        shape = self._shape
        if shape.insert is None and shape.uses & Uses.JOIN:
            for source in self._sources:
                if self._tables.is_reference(source.table.name):
                    raise Unsupported(
                        f"writing reference table '{source.table.name}'; USE each shard for it"
                    )
        if shape.kind is Kind.UPDATE:
            assigned = assigned_columns(shape.template)
            for each in self._sharded:
                column = each.columns[0].column
                if assigned is None or column in assigned:
                    raise Unsupported(
                        f"changing the vindex column '{column}'; delete the row, and insert it with the new value"
                    )

    # --- equalities between the tables ------------------------------------------------------

    def _tied(self, number: int) -> _Sharded:
        """Find the values that the vindex column of a source equals, step by step.

        Steps lead only over vindex columns whose equal values are on one shard:
        '1' = 1 and 1 = '1x' do not imply '1' = '1x'.
        """
        name = self._sources[number].table.name
        equality = self._tables.equality(name)
        columns, literals = [self._columns[number]], []
        # A walk over the graph of equalities: t.id = u.id and u.id = v.id also tie t to v.
        for here in columns:
            for equal in self._sources[here.source].equalities.get(here.column, ()):
                if not isinstance(equal, Reference):
                    literals.append(equal)
                elif equal not in columns and self._leads(equal, equality):
                    columns.append(equal)
        rows = self._tables.rows(name)
        return _Sharded(number, rows, equality, tuple(columns), tuple(literals))

    def _leads(self, equal: Reference, equality: str | None) -> bool:
        is_vindex_column = self._columns.get(equal.source) == equal
        name = self._sources[equal.source].table.name
        return (
            equality is not None
            and is_vindex_column
            and self._tables.equality(name) == equality
        )

    def _find_anchors(self) -> tuple[_Sharded | None, ...]:
        """Return for each outermost SELECT a table that has a part in each of its rows.

        All other sharded tables in it are tied to that one; None if it has no sharded table.
        Empty if shards cannot answer together.
        """
        shape, equalities = self._shape, self._equalities
        is_read = shape.kind is Kind.SELECT or shape.insert is not None
        if not is_read or equalities.limits_inside or self._pinned:
            return ()
        # The rows that a LIMIT cuts are on one shard if a table there is tied to the outer row. Each shard may cut its copy of
        # a reference table differently.
        if any(self._columns.keys().isdisjoint(numbers) for numbers in equalities.limited):
            return ()
        found = []
        rest = set(self._sharded)
        for block in range(len(equalities.blocks)):
            members = [
                each for each in self._sharded if self._sources[each.number].block == block
            ]
            anchor = self._anchor_of(members)
            # Some row of this SELECT may be made from rows of several shards.
            if members and anchor is None:
                return ()
            found.append(anchor)
            rest.difference_update(members)
        if rest or not all(self._are_together(group, found) for group in equalities.groupings):
            return ()
        if not all(self._are_whole(numbers, columns) for numbers, columns in equalities.apart):
            return ()
        return tuple(found)

    def _are_together(
        self, columns: frozenset[Reference], anchors: list[_Sharded | None]
    ) -> bool:
        """Return whether rows that are equal in these columns are on one shard."""
        return any(
            anchor.equality is not None
            and any(
                equal in columns or Reference(equal.source, ALL) in columns
                for equal in anchor.columns
            )
            for anchor in filter(None, anchors)
        )

    def _are_whole(self, numbers: frozenset[int], columns: frozenset[Reference]) -> bool:
        """Return whether rows of these sources that are equal in these columns are on one shard."""
        sharded = [each for each in self._sharded if each.number in numbers]
        return not sharded or any(
            each.equality is not None and each.columns[0] in columns for each in sharded
        )

    def _anchor_of(self, members: list[_Sharded]) -> _Sharded | None:
        reached = [{equal.source for equal in each.columns} for each in members]
        for each in members:
            is_certain = self._sources[each.number].is_certain
            # Every row of the SELECT has a row of this table, and all others follow it to its
            # shard: so each row of the answer is made by exactly one shard.
            if is_certain and all(each.number in found for found in reached):
                return each
        return None

    # --- routes -----------------------------------------------------------------------------

    def _find(self, statement: Statement) -> Route:
        shares = {each.number: self._shares(each, statement) for each in self._sharded}
        owners = set(self._pinned)
        is_one = True
        for found in shares.values():
            # No shard at all means that no row of the table matters: it can be anywhere.
            is_one = is_one and found is not None and len(found) <= 1
            owners.update(found or ())
        if is_one and len(owners) <= 1:
            return OneShard(*owners) if owners else AnyShard(self._tables.shards[0])
        if not self._anchors:
            self._refuse()
        chosen: set[Shard] = set()
        for anchor in filter(None, self._anchors):
            found = shares[anchor.number]
            chosen.update(self._tables.shards if found is None else found)
        if not chosen:
            return AnyShard(self._tables.shards[0])
        return self._scattered(tuple(shard for shard in self._tables.shards if shard in chosen))

    def _shares(self, each: _Sharded, statement: Statement) -> tuple[Shard, ...] | None:
        """Return the shards of a source's rows that matter; None if that may be all."""
        # The target of an INSERT is the last source: `_with_target` has put it there.
        is_target = self._shape.insert is not None and each.number == len(self._sources) - 1
        best: tuple[Shard, ...] | None = None
        for operands in each.literals:
            values = statement.values(operands)
            # A new row needs an owner, and a value without one is an error. A row that is only
            # searched for need not exist.
            if is_target and values is not None and len(values) == 1:
                return (each.rows.owner(values[0]),)
            found = each.rows.shares(values)
            # All conditions hold at once, so any of them may choose the shards: the one that
            # leaves the fewest.
            if found is not None and (best is None or len(found) < len(best)):
                best = tuple(found)
        return best

    def _scattered(self, shards: tuple[Shard, ...]) -> Route:
        shape = self._shape
        if shape.insert is not None:
            # A row of the source must become the same row, whatever rows other shards have.
            uses = _OF_ROWS_TOGETHER | Uses.DISTINCT | Uses.WINDOW | Uses.SETOP
            refuse(shape, uses, f"in {shape.verb} … SELECT over several shards")
            return WriteParts(tuple((shard, None) for shard in shards))
        if self._equalities.operators:
            self._check_equals_together()
            # Then each SELECT is a part, and one shard merges the rows of the parts.
            uses = NEVER_MERGED | _OF_ROWS_TOGETHER | Uses.ORDER
            refuse(shape, uses, "in a UNION over several shards")
            return Concatenate(shards)
        sources = self._equalities.sources
        main = self._equalities.factors
        # The column names of a derived table need not be those of its tables.
        certain = [source.table for source in sources if source.is_certain and source.is_main]
        return scattered_select(self._tables, shape, shards, main, certain)

    def _check_equals_together(self) -> None:
        """Raise Unsupported if equal rows of a UNION may come from several shards."""
        blocks, operators = self._equalities.blocks, self._equalities.operators
        owned = [self._owned_items(number) for number in range(len(blocks))]
        common = set.intersection(*owned)
        is_whole = None not in self._anchors and all(
            bool(common) or (operator == "UNION ALL") for operator in operators
        )
        if not is_whole or any(
            block.is_distinct and not places
            for places, block in zip(owned, blocks, strict=True)
        ):
            self._refuse()

    def _owned_items(self, block: int) -> set[tuple[int, str]]:
        """Return the items of a SELECT whose equal values are on one shard, each with the vindex type."""
        anchor = self._anchors[block]
        if anchor is None or anchor.equality is None:
            return set()
        return {
            (place, anchor.equality)
            for place, item in enumerate(self._equalities.blocks[block].items)
            if item in anchor.columns
        }

    def _refuse(self) -> None:
        shape = self._shape
        if shape.insert is not None:
            raise Unsupported(
                f"{shape.verb} … SELECT whose rows may belong on another shard than their source; select first, then insert the rows"
            )
        tied = "of tables that no vindex column ties to one shard"
        refuse(shape, Uses.SETOP)
        refuse(shape, Uses.JOIN, tied)
        refuse(shape, Uses.CTE)
        refuse(shape, Uses.SUBQUERY, tied)
        raise Unsupported("several tables over several shards")


@lru_cache(maxsize=2048)
def _read_ties(template: bytes) -> JoinEqualities | None:
    from streamfrom.sqlparse_ext.selects.join_equalities import (  # loads sqlglot
        read_join_equalities,
    )

    return read_join_equalities(template)
