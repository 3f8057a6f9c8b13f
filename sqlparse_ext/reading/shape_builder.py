"""The facts of one template while they are collected: a `Shape` that may still change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING

from streamfrom.sqlparse_ext.statements import Kind, Shape, Uses


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import (
        InsertShape,
        KillTarget,
        Operand,
        SetItem,
        StreamShape,
        TableRef,
    )
    from streamfrom.sqlparse_ext.text.tokens import Cursor


@dataclass(slots=True)
class ShapeBuilder:
    """The fields of `Shape`, filled one by one by the functions that read the statement."""

    template: bytes
    uses: Uses
    kind: Kind = Kind.OTHER
    verb: str = ""
    words: tuple[str, ...] = ()
    options: frozenset[str] = frozenset()
    tables: tuple[TableRef, ...] = ()
    conditions: Mapping[str, tuple[Operand, ...]] = field(default_factory=dict)
    condition_only: bool = False
    guards: frozenset[str] = frozenset()
    assignments: Mapping[str, Operand] = field(default_factory=dict)
    insert: InsertShape | None = None
    set: tuple[SetItem, ...] = ()
    variables: frozenset[str] = frozenset()
    target: str | None = None
    kill: KillTarget | None = None
    directives: Mapping[str, str] = field(default_factory=dict)
    stream: StreamShape | None = None

    def take_table(self, cursor: Cursor) -> None:
        """Read the table name at the cursor, if there is one, as the statement's only table."""
        table = cursor.table()
        self.tables = () if table is None else (table,)

    def shape(self) -> Shape:
        """Freeze the builder."""
        facts = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, value in facts.items():
            if isinstance(value, dict):
                facts[name] = MappingProxyType(value)
        return Shape(**facts)
