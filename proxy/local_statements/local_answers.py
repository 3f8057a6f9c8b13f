"""Statements that the proxy answers itself, because a backend would answer something else.

A backend knows its databases and not the keyspaces, its own connection ids and not those that
KILL takes here. Pure: what there is to report goes in, a column and its values come out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.proxy.local_statements.like_patterns import like
from streamfrom.proxy.local_statements.show_databases import is_show_databases, show_databases
from streamfrom.proxy.local_statements.show_partitions import is_show_partitions
from streamfrom.proxy.local_statements.show_processlist import is_processlist
from streamfrom.proxy.local_statements.show_queues import is_show_queues
from streamfrom.proxy.local_statements.show_vitess import is_show_vitess
from streamfrom.proxy.local_statements.show_vschema import is_show_vschema
from streamfrom.proxy.local_statements.vexplain import is_vexplain
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition
from streamfrom.sqlparse_ext.statements import Kind


if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamfrom.engine.sharding.keyspace import Keyspace
    from streamfrom.sqlparse_ext.statements import Shape, Statement


_SHARDS: Final = ("VITESS_SHARDS",)
_CONNECTION_ID: Final = b"SELECT CONNECTION_ID()"


def is_answered_locally(shape: Shape) -> bool:
    """True when the proxy itself answers statements of this shape."""
    if shape.kind is Kind.SHOW:
        words = shape.words
        return (
            is_processlist(shape)
            or is_show_vschema(shape)
            or is_show_vitess(shape)
            or is_show_databases(shape)
            or is_show_queues(shape)
            or is_show_partitions(shape)
            or words[:1] == _SHARDS
        )
    return is_vexplain(shape) or shape.template.upper() == _CONNECTION_ID


def answer(
    statement: Statement, keyspaces: Iterable[Keyspace], connection_id: int
) -> tuple[ColumnDefinition, list[str]]:
    """Return the one column and its values for a statement whose shape `is_answered_locally`."""
    shape = statement.shape
    if shape.kind is Kind.SELECT:
        column = ColumnDefinition("CONNECTION_ID()", type=FieldType.LONGLONG, length=20)
        return column, [str(connection_id)]
    if is_show_databases(shape):
        return show_databases(statement, keyspaces)
    ordered = sorted(keyspaces, key=lambda keyspace: keyspace.name)
    names = [f"{k.name}/{shard.name}" for k in ordered for shard in k.shards]
    # As in Vitess LIKE chooses, and WHERE does not.
    if shape.words[1:2] == ("LIKE",):
        names = [name for name in names if like(statement).fullmatch(name)]
    return ColumnDefinition("Shards"), names
