"""SHOW VSCHEMA TABLES, VINDEXES and KEYSPACES, with Vitess's columns and order. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import NoDatabaseSelected, NoSuchVschemaTable, UnknownDatabase
from streamfrom.proxy.wire.resultset import Table, table_of_texts


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace
    from streamfrom.sqlparse_ext.statements import Shape, TableRef


_TABLES: Final = ("VSCHEMA", "TABLES")
_VINDEXES: Final = ("VSCHEMA", "VINDEXES")
_KEYSPACES: Final = ("VSCHEMA", "KEYSPACES")
_VINDEXES_ON: Final = ("VSCHEMA", "VINDEXES", "ON")


def is_show_vschema(shape: Shape) -> bool:
    """True for the forms that `show_vschema` answers."""
    if shape.verb != "SHOW":
        return False
    is_on_table = shape.words[:3] == _VINDEXES_ON and bool(shape.tables)
    return is_on_table or shape.words in {_TABLES, _VINDEXES, _KEYSPACES}


def show_vschema(
    shape: Shape, keyspaces: Iterable[Keyspace], selected: Keyspace | None
) -> Table:
    """Return columns and rows for a shape that `is_show_vschema`.

    *keyspaces* are those in the user's sight, *selected* is the session's own.

    Raises:
        NoDatabaseSelected: of TABLES and VINDEXES ON, where no keyspace is meant.
        UnknownDatabase, NoSuchVschemaTable: of VINDEXES ON.
    """
    ordered = sorted(keyspaces, key=lambda keyspace: keyspace.name)
    if shape.words == _TABLES:
        if selected is None:
            raise NoDatabaseSelected
        tables = selected.vschema.tables if selected.vschema is not None else ()
        return table_of_texts(("Tables",), [(name,) for name in sorted(tables)])
    if shape.words == _KEYSPACES:
        return table_of_texts(
            ("Keyspace", "Sharded", "Foreign Key", "Comment"),
            [
                (
                    k.name,
                    str(k.sharded).lower(),
                    "unmanaged" if k.vschema is None else k.vschema.foreign_key_mode,
                    k.vschema_fault,
                )
                for k in ordered
            ],
        )
    if shape.tables:
        return _vindexes_on(shape.tables[0], ordered, selected)
    return table_of_texts(
        ("Keyspace", "Name", "Type", "Params", "Owner"),
        [
            (k.name, name, spec.type, _params(spec.params.items()), spec.owner)
            for k in ordered
            if k.vschema is not None
            for name, spec in sorted(k.vschema.vindexes.items())
        ],
    )


def _vindexes_on(
    table: TableRef, keyspaces: Iterable[Keyspace], selected: Keyspace | None
) -> Table:
    keyspace = selected
    if table.schema is not None:
        keyspace = next((k for k in keyspaces if k.name == table.schema), None)
        if keyspace is None:
            raise UnknownDatabase(table.schema)
    if keyspace is None:
        raise NoDatabaseSelected
    rows = []
    if keyspace.sharded and keyspace.vschema is not None:
        routing = keyspace.vschema.tables.get(table.name)
        if routing is None:
            raise NoSuchVschemaTable(table.name, keyspace.name)
        rows = [
            (
                ", ".join(cv.columns),
                spec.name,
                spec.type,
                _params(spec.params.items()),
                spec.owner,
            )
            for cv in routing.column_vindexes
            for spec in (cv.vindex,)
        ]
    return table_of_texts(("Columns", "Name", "Type", "Params", "Owner"), rows)


def _params(params: Iterable[tuple[str, str]]) -> str:
    return "; ".join(f"{key}={value}" for key, value in sorted(params))
