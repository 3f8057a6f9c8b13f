"""`SELECT id, keyspace_id, … FROM a_vindex WHERE id = 1`: what a vindex makes of values. Pure.

Vitess's vindex functions (https://vitess.io/docs/reference/features/vindexes/), with their columns and order: a
vindex reads like a table in the keyspace whose vschema has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from streamfrom.engine.sharding.vindex import Vindex, is_loose
from streamfrom.proxy.wire.constants import BINARY_CHARSET
from streamfrom.proxy.wire.resultset import ColumnDefinition
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.literal_values import Number
from streamfrom.sqlparse_ext.reading.conditions import WHERE_ENDS
from streamfrom.sqlparse_ext.text.tokens import Cursor, statement_tokens


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace
    from streamfrom.engine.sharding.vschema import VindexSpec
    from streamfrom.sqlparse_ext.statements import Shape, Statement, Value


_COLUMNS: Final = ("id", "keyspace_id", "range_start", "range_end", "hex_keyspace_id", "shard")


def vindex_columns(shape: Shape) -> Sequence[ColumnDefinition]:
    """Return the columns of the answer. Raises Unsupported for another form of SELECT."""
    return [ColumnDefinition(name, charset=BINARY_CHARSET) for name in _form(shape)]


def vindex_rows(
    statement: Statement, keyspace: Keyspace, spec: VindexSpec
) -> list[tuple[bytes | None, ...]]:
    """Return a row for each value that *spec*, a vindex of *keyspace*, has an id for.

    As in Vitess there is none for NULL, nor for the empty string under `binary`, whose id is empty.

    Raises:
        Unsupported: another form of SELECT, or a vindex or a text whose ids are not known.
    """
    names = [name.lower() for name in _form(statement.shape)]
    vindex = spec.vindex
    if not isinstance(vindex, Vindex):
        raise Unsupported(f"SELECT from '{spec.name}', a vindex of several columns")
    values = statement.values(statement.shape.conditions["id"])
    if values is None:
        raise _other_form()
    rows = []
    for value in values:
        ident = None if value is None else vindex.map(value)
        if ident is None and value is not None and is_loose(vindex):
            raise Unsupported(f"the keyspace id that '{spec.name}' has for this text")
        if not ident:
            continue
        shard = keyspace.shard_of(ident)
        key_range = shard.key_range
        row = {
            "id": _text(value),
            "keyspace_id": ident,
            "range_start": b"" if key_range is None else key_range.start,
            "range_end": b"" if key_range is None else key_range.end,
            "hex_keyspace_id": ident.hex().encode(),
            "shard": shard.name.encode(),
        }
        rows.append(tuple(row[name] for name in names))
    return rows


@lru_cache(maxsize=1024)
def _form(shape: Shape) -> tuple[str, ...]:
    """Return the columns that a SELECT lists, as it spells them."""
    tokens = statement_tokens(shape.template)
    cursor = Cursor(tokens, shape.template, 1)
    names: list[str] = []
    if cursor.accept("*"):
        names += _COLUMNS
    else:
        while (name := cursor.name()) is not None and name.lower() in _COLUMNS:
            names.append(name)
            if not cursor.accept(","):
                break
    if (
        not (names and cursor.accept("FROM") and cursor.table() and cursor.key == "WHERE")
        or not shape.condition_only
        or list(shape.conditions) != ["id"]
        or shape.guards
        or any(token.key in WHERE_ENDS for token in tokens)
    ):
        raise _other_form()
    return tuple(names)


def _other_form() -> Unsupported:
    columns = ", ".join(_COLUMNS)
    return Unsupported(
        f"this SELECT from a vindex, which takes {columns} or * and WHERE id = value or id IN (values)"
    )


def _text(value: Value) -> bytes | None:
    if isinstance(value, Number):
        return value.text.encode()
    return b"%d" % value if isinstance(value, int) else value
