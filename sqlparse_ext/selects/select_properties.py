"""Properties of a parsed SELECT that hold wherever its tables are."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def is_limited(node: exp.Expr) -> bool:
    """Whether a query has a LIMIT of its own."""
    return bool(node.args.get("limit") or node.args.get("offset"))


def has_aggregate(select: exp.Select) -> bool:
    """Whether an aggregate function, or one that may be, makes one row of all of a SELECT's rows."""
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
    """Whether rows of different groups, or any two rows without groups, cannot change each other's part of the answer."""
    group = select.args.get("group")
    if group is None:  # an aggregate makes one row of all rows
        return select.args.get("having") is None and not has_aggregate(select)
    return not any(value for key, value in group.args.items() if key != "expressions")  # ROLLUP


def looks_at_other_rows(node: exp.Expr) -> bool:
    """Whether a LIMIT, a window or a user variable is anywhere in a query, or may be."""
    seen = (exp.Window, exp.Parameter, exp.SessionParameter, exp.PropertyEQ)
    return any(is_limited(each) for each in node.find_all(exp.Query)) or bool(node.find(*seen))


def hides_order(select: exp.Select) -> bool:
    """Whether the order in which rows come to a SELECT is not that of its answer."""
    clauses = ("group", "order", "distinct")
    return any(select.args.get(clause) is not None for clause in clauses) or has_aggregate(
        select
    )


def operands_of_and(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield what AND binds together."""
    pending = [node]
    while pending:
        each = pending.pop().unnest()
        if isinstance(each, exp.And):
            pending += [each.this, each.expression]
        else:
            yield each
