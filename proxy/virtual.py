"""Statements that the proxy answers itself, because no backend knows the answer.

A backend knows its databases, not the keyspaces; `SHOW VITESS_SHARDS` is Vitess's own. Pure:
names in, columns and rows out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proxy.wire.resultset import Column
from sqlparse_ext.statements import Kind


if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.keyspace import Keyspace
    from sqlparse_ext.statements import Shape


_DATABASES: Final = frozenset({("DATABASES",), ("SCHEMAS",)})
_SHARDS: Final = frozenset({("VITESS_SHARDS",)})


def is_virtual(shape: Shape) -> bool:
    """True when `answer` answers statements of this shape."""
    return shape.kind is Kind.SHOW and shape.words in _DATABASES | _SHARDS


def answer(shape: Shape, keyspaces: Iterable[Keyspace]) -> tuple[Column, list[str]]:
    """Return the one column and its values for a shape that `is_virtual`, of the keyspaces in sight."""
    if shape.words in _DATABASES:
        names = sorted({*(keyspace.name for keyspace in keyspaces), "information_schema"})
        return Column("Database", table="SCHEMATA"), names
    keyspaces = sorted(keyspaces, key=lambda keyspace: keyspace.name)
    return Column("Shards"), [f"{k.name}/{shard.name}" for k in keyspaces for shard in k.shards]
