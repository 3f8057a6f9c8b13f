"""Find the equalities of a query's columns, in every row that can matter to its answer.

A join, a subquery, a CTE or a UNION names tables; its conditions compare their columns with literals
and with one another. `read_join_equalities` collects the equalities that certainly hold, and gives
up if the query has a form that this module does not know. A missed equality costs a
refusal, an invented one would cost rows.

An equality of source *i* means: a row of *i* whose column differs changes nothing in the answer. So the
ON of a LEFT JOIN is an equality only of the table on its right, since rows of the left come anyway,
and a subquery's condition is one of the subquery's table, never of the outer one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from streamfrom.sqlparse_ext.reading.queries import QUERY_STARTS, as_select, insert_parts
from streamfrom.sqlparse_ext.reading.structure import is_table, marked_place, parse_query
from streamfrom.sqlparse_ext.selects.select_ast import (
    ALL,
    JoinEqualities,
    QueryBlock,
    Reference,
    Scope,
    Source,
)
from streamfrom.sqlparse_ext.statements import InsertSource, ListSlot, Param, Slot, TableRef
from streamfrom.sqlparse_ext.text.tokens import Cursor, Token, statement_tokens


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.selects.select_ast import Equality
    from streamfrom.sqlparse_ext.statements import Operand

_JOIN_KINDS: Final = frozenset({"", "INNER", "OUTER", "CROSS", "STRAIGHT_JOIN"})
_JOIN_SIDES: Final = frozenset({"", "LEFT", "RIGHT"})


def read_join_equalities(template: bytes) -> JoinEqualities | None:
    """Return the equalities of a SELECT, an UPDATE, a DELETE or an INSERT … SELECT; None when in doubt.

    An UPDATE or DELETE is read as a SELECT of the same rows. For an INSERT its SELECT is read, so the
    target is none of the sources.
    """
    tokens = _query_tokens(statement_tokens(template), template)
    if tokens is None:
        return None
    tree = parse_query(tokens, template, marked=True)
    if not isinstance(tree, exp.Query) or tree.find(exp.Lateral):
        return None
    return _EqualityReader(tokens, tree).read()


def _query_tokens(tokens: list[Token], template: bytes) -> list[Token] | None:
    if not tokens:
        return None
    verb = tokens[0].key
    if verb in QUERY_STARTS:
        return tokens
    if verb in ("UPDATE", "DELETE"):
        return as_select(tokens, 1, verb)
    if verb in ("INSERT", "REPLACE"):
        insert = insert_parts(Cursor(tokens, template, 1))
        if insert is not None and insert.source is InsertSource.SELECT and insert.is_whole:
            return tokens[slice(*insert.source_at)]
    return None


class _DoubtError(Exception):
    """The query has a form that this module does not know."""


class _EqualityReader:
    def __init__(self, tokens: list[Token], tree: exp.Query) -> None:
        self.tokens = tokens
        self.tree = tree
        self.found = JoinEqualities()
        self.block: int | None = None
        self.present: set[int] = set()  # in every row, unless an outer join has NULLs for it
        self.extended: set[int] = set()  # by NULLs, in some row

    def read(self) -> JoinEqualities | None:
        tree, found = self.tree, self.found
        try:
            self.outermost(tree)
        except _DoubtError:
            return None
        # A table that was missed may have rows on any shard, so there is no result at all.
        if len(found.sources) != sum(map(is_table, tree.find_all(exp.Table))):
            return None  # there is one where this module does not look
        for number in self.present - self.extended:
            found.sources[number].is_certain = True
        return found

    # --- queries ----------------------------------------------------------------------------

    def outermost(self, node: exp.Expr) -> None:
        """Read the query itself, or a SELECT of it if it is a UNION."""
        while isinstance(node, exp.Subquery | exp.Paren):
            self.check_limit(node)
            node = node.this
        if isinstance(node, exp.SetOperation):
            self.check_limit(node)
            self.with_(node)
            self.found.operators.append(
                type(node).__name__.upper() + ("" if node.args.get("distinct") else " ALL")
            )
            self.outermost(node.this)
            self.outermost(node.expression)
            self.block = None
            return
        self.block = len(self.found.blocks)
        scope = self.query(node, None, is_main=True, is_present=True)
        assert scope is not None, "no UNION, so a SELECT"
        items: list[Equality | None] = []
        for item in node.expressions:
            if item.is_star:
                items = []
                break
            items.append(self.side(item.unalias(), scope))
        is_distinct, is_grouped = (
            node.args.get(key) is not None for key in ("distinct", "group")
        )
        self.found.blocks.append(QueryBlock(tuple(items), is_distinct, is_grouped))

    def with_(self, node: exp.Expr) -> None:
        """Read the CTEs of a query."""
        with_ = node.args.get("with_")
        for cte in with_.expressions if with_ is not None else ():
            self.query(cte.this, None)

    def query(
        self,
        node: exp.Expr,
        outer: Scope | None,
        *,
        is_main: bool = False,
        is_present: bool = False,
    ) -> Scope | None:
        """Read a query at any depth; return the scope of a SELECT.

        is_present: each row of the query is a row, or a part of a row, of an outermost SELECT.
        """
        while isinstance(node, exp.Subquery | exp.Paren):
            self.check_limit(node)
            node = node.this
        # A subquery that is a value: its LIMIT does not limit rows of the FROM, and is kept
        # apart.
        is_value = outer is not None and isinstance(node, exp.Select)
        if not is_value:
            self.check_limit(node)
        self.with_(node)
        if isinstance(node, exp.SetOperation):
            self.query(node.this, outer)
            self.query(node.expression, outer)
            return None
        if not isinstance(node, exp.Select):
            raise _DoubtError
        scope = Scope(outer)
        from_ = node.args.get("from_")
        joins = node.args.get("joins") or ()
        if from_ is not None:
            # Next to a join, a row of the derived table may be in several rows of the
            # answer.
            is_whole = is_present and not joins
            if not (is_whole and self.derived(from_.this, node, scope)):
                self.source(from_.this, scope, is_main=is_main)
        for join in joins:
            self.join(join, scope, is_main=is_main)
        if is_present:
            self.present |= scope.numbers
        if is_value and _is_limited(node):
            self.found.limited.append(frozenset(scope.numbers))
        for clause, value in node.args.items():
            # Only the WHERE of a SELECT holds for every row. HAVING is about groups.
            if clause == "where" and value is not None:
                self.conjuncts(value.this, scope, both_ways=True, only=None)
            if clause not in ("from_", "with_"):
                for part in value if isinstance(value, list) else [value]:
                    if isinstance(part, exp.Expr):
                        self.inside(part, scope)
        return scope

    def check_limit(self, node: exp.Expr) -> None:
        if node is not self.tree and _is_limited(node):
            self.found.limits_inside = True

    def inside(self, node: exp.Expr, scope: Scope) -> None:
        """Read the subqueries of a clause."""
        if isinstance(node, exp.Query):
            if isinstance(node.parent, exp.Join | exp.From):
                return  # a derived table, which `source` has read
            self.query(node, scope)
            return
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            self.membership(node, scope)
            return
        if isinstance(node, exp.Limit) and node.this is not None:
            self.found.limits_inside = True  # EXISTS ((SELECT …) LIMIT 1)
        for child in node.iter_expressions():
            self.inside(child, scope)

    def membership(self, node: exp.In, scope: Scope) -> None:
        """Read `column IN (SELECT column …)`: rows that differ from the outer column are no members."""
        inner = node.args["query"].unnest()
        found = self.query(node.args["query"], scope)
        self.inside(node.this, scope)
        is_plain = isinstance(inner, exp.Select) and not any(
            inner.args.get(clause)
            for clause in ("group", "having", "limit", "offset", "windows", "qualify")
        )
        if not is_plain or found is None or len(inner.expressions) != 1:
            return
        member = self.side(inner.expressions[0].unalias(), found)
        outer = self.side(node.this.unnest(), scope)
        if (
            isinstance(member, Reference)
            and isinstance(outer, Reference)
            and member.source in found.numbers
            and outer.source not in found.numbers
        ):
            self.equate(member, outer)

    # --- FROM -------------------------------------------------------------------------------

    def derived(self, node: exp.Expr, outer: exp.Select, scope: Scope) -> bool:
        """Read a derived table that is all of *outer*'s FROM.

        False unless each of its rows comes from one row of its FROM, or from a group of these rows, whose
        columns are added to `groupings`.
        """
        inner = node.unnest()
        if not isinstance(node, exp.Subquery) or not isinstance(inner, exp.Select):
            return False
        if inner.args.get("order") is not None and not _hides_order(outer):
            return False  # MySQL sorts the answer by it
        if not is_row_by_row(inner):
            return False
        found = self.query(node, None, is_present=True)
        scope.add(node.alias_or_name.lower(), None)
        assert found is not None, "a SELECT"
        self.found.groupings += self.together(inner, found)
        return True

    def together(self, select: exp.Select, scope: Scope) -> list[frozenset[Reference]]:
        """Return the columns of GROUP BY and those of DISTINCT, if present."""
        items, group = select.expressions, select.args.get("group")
        found = []
        if group is not None:
            aliases = {item.alias.lower() for item in items if isinstance(item, exp.Alias)}
            # GROUP BY name means the alias if there is one of that name: that is an
            # expression, not a column.
            columns = [
                each
                for each in group.expressions
                if isinstance(each, exp.Column)
                and (each.table or each.name.lower() not in aliases)
            ]
            found.append(self.references(columns, scope))
        if select.args.get("distinct") is not None:
            found.append(self.references([item.unalias() for item in items], scope))
        return found

    def beside(self, node: exp.Subquery, scope: Scope) -> None:
        """Read a derived table that is joined with others.

        Its columns are equalities of its sources if rows that differ in them never meet in one of its rows.
        """
        inner, alias = node.unnest(), node.alias_or_name.lower()
        found = self.query(node, None)
        scope.add(alias, None)
        if (
            found is None
            or not isinstance(inner, exp.Select)
            or inner.args.get("order") is not None
            or looks_at_other_rows(node)
            or any(join.side for join in inner.args.get("joins") or ())
            or not (is_row_by_row(inner) and found.numbers)
            or None in found.names.values()
            or found.inner
        ):
            return
        together = self.together(inner, found)
        # Rows that agree in these columns become one. On one shard that is right only if it
        # has all of them.
        self.found.apart += ((frozenset(found.numbers), columns) for columns in together)
        equalities = {}
        for item in inner.expressions:
            side = self.side(item.unalias(), found)
            if isinstance(side, Reference) and all(side in columns for columns in together):
                equalities[item.alias_or_name.lower()] = side
        scope.names[alias] = equalities
        scope.inner |= found.numbers

    def references(self, nodes: Sequence[exp.Expr], scope: Scope) -> frozenset[Reference]:
        """Return the columns among *nodes*; `*` is ALL of each table that it stands for."""
        found: set[Reference] = set()
        for node in nodes:
            if isinstance(node, exp.Star):
                found.update(Reference(number, ALL) for number in scope.numbers)
                continue
            side = self.side(node, scope)
            if isinstance(side, Reference):
                found.add(Reference(side.source, ALL) if node.is_star else side)
        return frozenset(found)

    def source(self, node: exp.Expr, scope: Scope, *, is_main: bool) -> int | None:
        """Read one factor of a FROM, and return the number of its table; None for a derived table or a CTE."""
        if node.args.get("joins") or node.args.get("pivots"):
            raise _DoubtError
        alias = node.alias_or_name.lower()
        if isinstance(node, exp.Subquery):
            if not isinstance(node.this, exp.Query):
                raise _DoubtError  # parentheses around joins
            self.beside(node, scope)
            if is_main:
                self.found.factors.append(
                    TableRef(None, node.alias_or_name, node.alias_or_name)
                )
            return None
        if not isinstance(node, exp.Table):
            raise _DoubtError
        if not is_table(node):
            scope.add(alias, None)
            return None
        number = len(self.found.sources)
        table = TableRef(node.db or None, node.name, node.alias or None)
        self.found.sources.append(Source(table, self.block, is_main))
        if is_main:
            self.found.factors.append(table)
        scope.add(alias, number)
        return number

    def join(self, join: exp.Join, scope: Scope, *, is_main: bool) -> None:
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        if kind not in _JOIN_KINDS or side not in _JOIN_SIDES:
            raise _DoubtError
        before, inner = scope.numbers | scope.inner, set(scope.inner)
        is_first = len(scope.names) == 1
        number = self.source(join.this, scope, is_main=is_main)
        using = join.args.get("using") or ()
        added = scope.inner - inner if number is None else {number}
        # The sources whose rows ON chooses: those of an outer join's other side come anyway.
        chosen = {"": None, "LEFT": added, "RIGHT": before}[side]
        self.extended |= chosen or set()
        condition = join.args.get("on")
        if condition is not None:
            self.conjuncts(condition, scope, both_ways=side == "", only=chosen)
        for identifier in using:
            self.using(
                identifier.name.lower(), scope, side, number, before if is_first else None
            )

    def using(
        self, column: str, scope: Scope, side: str, number: int | None, first: set[int] | None
    ) -> None:
        """Equate the new source with those that share *column*; *first*: the one table before it."""
        shared = scope.shared[column]
        if first is not None:
            shared[:] = first
        if number is None or not shared:
            return
        mine = Reference(number, column)
        for other in shared if side != "LEFT" else shared[:1]:
            if side != "RIGHT":
                self.equate(mine, Reference(other, column))
            if side != "LEFT":
                self.equate(Reference(other, column), mine)
        if side == "":
            shared.append(number)
        elif side == "RIGHT":
            shared[:] = [number]

    # --- conditions -------------------------------------------------------------------------

    def conjuncts(
        self, node: exp.Expr, scope: Scope, *, both_ways: bool, only: set[int] | None
    ) -> None:
        """Read the operands of AND. *only*: the sources whose rows the condition chooses; None for all."""
        for condition in _operands_of_and(node):
            left: Equality | None = None
            right: Equality | None = None
            if isinstance(condition, exp.In) and condition.expressions:
                left, right = self.side(condition.this.unnest(), scope), self.listed(condition)
            elif isinstance(condition, exp.EQ):
                left = self.side(condition.this.unnest(), scope)
                right = self.side(condition.expression.unnest(), scope)
            for mine, other in ((left, right), (right, left)):
                if not isinstance(mine, Reference) or other is None:
                    continue
                if mine.source not in scope.numbers | scope.inner or (
                    only is not None and mine.source not in only
                ):
                    continue
                if isinstance(other, Reference) and (
                    other.source == mine.source
                    or (not both_ways and only is not None and other.source in only)
                ):
                    continue
                self.equate(mine, other)

    def listed(self, node: exp.In) -> tuple[Operand, ...] | None:
        """Return the literals of a list; None if it contains anything else."""
        found: list[Operand] = []
        for value in node.expressions:
            if (operand := self.operand(value)) is None:
                return None
            found += operand
        return tuple(found)

    def side(self, node: exp.Expr, scope: Scope) -> Equality | None:
        """Return a column or a literal; None for any other expression."""
        if isinstance(node, exp.Column):
            return None if node.args.get("db") else scope.find(node)
        return self.operand(node)

    def operand(self, node: exp.Expr) -> tuple[Operand, ...] | None:
        if isinstance(node, exp.Null):
            return (None,)
        place = marked_place(node)
        if place is None or place >= len(self.tokens):
            return None
        slot = self.tokens[place].slot
        return (slot,) if isinstance(slot, Slot | ListSlot | Param) else None

    def equate(self, mine: Reference, other: Equality) -> None:
        self.found.sources[mine.source].equalities.setdefault(mine.column, []).append(other)


# --- how a SELECT uses its rows ---------------------------------------------------------------


def _is_limited(node: exp.Expr) -> bool:
    """Return whether a query has its own LIMIT."""
    return bool(node.args.get("limit") or node.args.get("offset"))


def _has_aggregate(select: exp.Select) -> bool:
    """Return whether an aggregate function, or a possible one, makes one row from all of a SELECT's rows."""
    pending: list[exp.Expr] = [*select.expressions]
    if select.args.get("order") is not None:
        pending.append(select.args["order"])
    while pending:
        node = pending.pop()
        if isinstance(node, exp.AggFunc | exp.Anonymous):
            return True
        if not isinstance(node, exp.Query):
            pending += node.iter_expressions()
    return False


def is_row_by_row(select: exp.Select) -> bool:
    """Return whether rows of different groups, or any two rows without groups, cannot change each other's part of the answer."""
    group = select.args.get("group")
    if group is None:  # an aggregate makes one row of all rows
        return select.args.get("having") is None and not _has_aggregate(select)
    return not any(value for key, value in group.args.items() if key != "expressions")  # ROLLUP


def looks_at_other_rows(node: exp.Expr) -> bool:
    """Return whether a LIMIT, a window or a user variable is, or may be, anywhere in a query."""
    seen = (exp.Window, exp.Parameter, exp.SessionParameter, exp.PropertyEQ)
    return any(_is_limited(each) for each in node.find_all(exp.Query)) or bool(node.find(*seen))


def _hides_order(select: exp.Select) -> bool:
    """Return whether the order in which rows come to a SELECT is not that of its answer."""
    clauses = ("group", "order", "distinct")
    return any(select.args.get(clause) is not None for clause in clauses) or _has_aggregate(
        select
    )


def _operands_of_and(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the operands of AND."""
    pending = [node]
    while pending:
        each = pending.pop().unnest()
        if isinstance(each, exp.And):
            pending += [each.this, each.expression]
        else:
            yield each
