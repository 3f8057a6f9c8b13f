"""VEXPLAIN PLAN: where a statement would run, in the format of Vitess's plans; and the accepted forms of VEXPLAIN. Pure.

One column `JSON` with one value, indented by tabs, in the names and the order of Vitess's
`PrimitiveDescription` (https://vitess.io/docs/user-guides/sql/vexplain/): OperatorType,
Variant, Keyspace, TargetDestination, TargetTabletType, then the rest by name, Inputs last. Two
keys are this proxy's own, because it explains the statement with its values: `Shards` lists the
shards for these values, and `Queries` the text for each shard if the texts differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from streamfrom.proxy.routing.routes import Combine, Merge, WriteParts
from streamfrom.proxy.wire.resultset import ColumnDefinition
from streamfrom.sqlparse_ext.errors import SqlError
from streamfrom.sqlparse_ext.literal_values import Number
from streamfrom.sqlparse_ext.session.information_schema import SYSTEM_SCHEMAS
from streamfrom.sqlparse_ext.statements import Kind, ListSlot, Shape, Statement, Value


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace, Shard
    from streamfrom.proxy.routing.routes import Route


COLUMNS: Final = (ColumnDefinition("JSON", length=1 << 16),)
_FORMAT: Final = ("FORMAT", "VTEXPLAIN")
_EXPLAINED: Final = frozenset(
    {"SELECT", "WITH", "TABLE", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE", "STREAM"}
)
_OPERATORS: Final = {
    Kind.INSERT: "Insert",
    Kind.REPLACE: "Insert",
    Kind.UPDATE: "Update",
    Kind.DELETE: "Delete",
}
_ORDER: Final = ("OperatorType", "Variant", "Keyspace", "TargetDestination", "TargetTabletType")


def is_vexplain(shape: Shape) -> bool:
    """Return whether *shape* is VEXPLAIN or EXPLAIN FORMAT=VTEXPLAIN."""
    return shape.kind is Kind.EXPLAIN and (
        shape.verb == "VEXPLAIN" or shape.words[:2] == _FORMAT
    )


def check_form(shape: Shape) -> None:
    """Raise SqlError for any other form, including Vitess's own such as VEXPLAIN TRACE."""
    words = shape.words
    skipped = 2 if words[:2] == _FORMAT else words[:1] == ("PLAN",)
    if not _EXPLAINED.intersection(words[skipped : skipped + 1]):
        raise SqlError(
            "VEXPLAIN PLAN takes a SELECT, INSERT, REPLACE, UPDATE, DELETE or STREAM"
        )


def explain_stream(keyspace: Keyspace, shards: Sequence[Shard], table: str) -> bytes:
    """Return the plan of a STREAM from *table* over *shards*."""
    # A target is one shard, or several that are adjacent.
    first, last = shards[0].key_range, shards[-1].key_range
    start = first.start.hex() if first else ""
    end = last.end.hex() if last else ""
    return _json(
        {
            "OperatorType": "MStream",
            "Keyspace": _keyspace(keyspace),
            "TargetDestination": f"ExactKeyRange({start}-{end})",
            "TargetTabletType": "PRIMARY",
            "Table": table,
            "Shards": _names(shards),
        }
    )


def explain_filled(
    statement: Statement, keyspace: Keyspace, sequence: str, count: int
) -> bytes:
    """Return the plan of an INSERT that takes *count* values of *sequence* before it is routed.

    sequence: empty for message ids.
    """
    return _json(
        {
            "OperatorType": "Insert",
            "Variant": "Sharded" if keyspace.sharded else "Unsharded",
            "Keyspace": _keyspace(keyspace),
            "TargetTabletType": "PRIMARY",
            "AutoIncrement": f"select next {count} values from {sequence}"  # noqa: S608 - printed, not run
            if sequence
            else f"{count} of vt_auto_id",
            "Query": _text(statement.sql),
            "Table": statement.shape.tables[0].name,
        }
    )


def explain_plan(
    statement: Statement, keyspace: Keyspace, reach: Sequence[Shard], route: Route
) -> bytes:
    """Return the plan of *statement*, as it would be sent, by its *route*.

    *reach* are the shards of its target.
    """
    if len(reach) < len(keyspace.shards) and len(reach) == 1:
        # A target of one shard needs no plan: every statement goes there.
        plan = _source(statement, keyspace, route)
        plan |= {"OperatorType": "Send", "TargetDestination": f"Shard({reach[0].name})"}
        return _json(plan)
    return _json(_planned(statement, keyspace, route))


def _planned(statement: Statement, keyspace: Keyspace, route: Route) -> dict[str, Any]:
    if isinstance(route, Combine):
        inputs = [_sorted(_planned(part, keyspace, way)) for _, part, way in route.answered]
        return {"OperatorType": "Merge", "Variant": "Parts", "Inputs": inputs}
    shape = statement.shape
    plan = _source(statement, keyspace, route)
    plan["OperatorType"] = _OPERATORS.get(shape.kind, "Route")
    if shape.kind is not Kind.SELECT:
        plan["TargetTabletType"] = "PRIMARY"
    if isinstance(route, WriteParts) and any(sql for _, sql in route.parts):
        own = statement.sql
        plan["Queries"] = {shard.name: _text(sql or own) for shard, sql in route.parts}
    if not keyspace.sharded:
        plan["Variant"] = "Unsharded"
    elif plan["OperatorType"] == "Insert":
        plan["Variant"] = "Sharded"
    else:
        plan |= _access(statement, keyspace, len(plan["Shards"]))
    return _merged(route, plan) if isinstance(route, Merge) else plan


def _source(statement: Statement, keyspace: Keyspace, route: Route) -> dict[str, Any]:
    """Return the part of a plan about the statement and its shards."""
    plan: dict[str, Any] = {
        "Keyspace": _keyspace(keyspace),
        "Shards": _names(route.shards),
        "Query": _text(statement.sql),
    }
    tables = statement.shape.tables
    if tables:
        plan["Table"] = ", ".join(dict.fromkeys(table.name for table in tables))
    return plan


def _access(statement: Statement, keyspace: Keyspace, count: int) -> dict[str, Any]:
    """Return how the *count* shards of a statement over rows were chosen."""
    shape, vschema = statement.shape, keyspace.vschema
    assert vschema is not None
    own = [
        table
        for table in shape.tables
        if table.schema is None or table.schema.lower() not in SYSTEM_SCHEMAS
    ]
    if not own:
        return {"Variant": "DBA" if shape.tables else "Reference"}
    tables = [vschema.tables[table.name] for table in own if table.name in vschema.tables]
    pinned = next((table.pinned for table in tables if table.pinned is not None), None)
    if pinned is not None:
        return {"Variant": "EqualUnique", "Values": [pinned.hex()], "Vindex": "binary"}
    dealt = next((table for table in tables if table.primary is not None), None)
    if dealt is None or dealt.primary is None:
        return {"Variant": "Reference"}
    # The words are Vitess's: one key range is EqualUnique, a list IN.
    vindex, operands = dealt.primary.vindex.name, shape.conditions.get(dealt.primary.column)
    values = None if operands is None else statement.values(operands)
    if operands is None or values is None:
        return {"Variant": "Scatter" if count > 1 else "EqualUnique"}
    told = {"Values": [_value(value) for value in values], "Vindex": vindex}
    if all(value is None for value in values):
        return {"Variant": "None", **told}
    if any(isinstance(value, Number) for value in values):
        return {"Variant": "Scatter"}
    is_list = isinstance(operands[0], ListSlot)
    return {"Variant": "IN" if is_list else "EqualUnique", **told}


def _merged(route: Merge, source: dict[str, Any]) -> dict[str, Any]:
    """Return the plan of a SELECT whose rows the proxy merges."""
    select = route.select
    if route.in_groups:
        variant = "Aggregate"
    elif select.order:
        variant = "Ordered"
    else:
        variant = "Concatenate"
    return {"OperatorType": "Merge", "Variant": variant, "Inputs": [_sorted(source)]}


def _keyspace(keyspace: Keyspace) -> dict[str, Any]:
    return {"Name": keyspace.name, "Sharded": keyspace.sharded}


def _names(shards: Sequence[Shard]) -> list[str]:
    return [shard.name for shard in shards]


def _value(value: Value) -> str:
    match value:
        case bytes():
            return _text(value)
        case Number():
            return value.text
        case None:
            return "NULL"
        case int():
            return str(value)


def _text(sql: bytes) -> str:
    return sql.decode("utf-8", "replace")


def _sorted(plan: dict[str, Any]) -> dict[str, Any]:
    rest = sorted(set(plan) - set(_ORDER) - {"Inputs"})
    return {key: plan[key] for key in (*_ORDER, *rest, "Inputs") if key in plan}


def _json(plan: dict[str, Any]) -> bytes:
    return json.dumps(_sorted(plan), indent="\t", ensure_ascii=False).encode()
