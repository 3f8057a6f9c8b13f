"""SHOW VSCHEMA TABLES, VINDEXES and KEYSPACES, with Vitess's columns and order. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proxy.errors import NoDatabaseSelected
from proxy.wire.resultset import Column


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.keyspace import Keyspace
    from sqlparse_ext.statements import Shape


_TABLES: Final = ("VSCHEMA", "TABLES")
_VINDEXES: Final = ("VSCHEMA", "VINDEXES")
_KEYSPACES: Final = ("VSCHEMA", "KEYSPACES")
# No keyspace manages foreign keys; Vitess's name for that.
_FOREIGN_KEY_MODE: Final = "unmanaged"


def is_show_vschema(shape: Shape) -> bool:
    """True for the forms that `show_vschema` answers."""
    return shape.verb == "SHOW" and shape.words in {_TABLES, _VINDEXES, _KEYSPACES}


def show_vschema(
    shape: Shape, keyspaces: Iterable[Keyspace], selected: Keyspace | None
) -> tuple[Sequence[Column], list[tuple[bytes | None, ...]]]:
    """Return columns and rows for a shape that `is_show_vschema`.

    *keyspaces* are those in the user's sight, *selected* is the session's own. Raises
    NoDatabaseSelected for TABLES without one.
    """
    ordered = sorted(keyspaces, key=lambda keyspace: keyspace.name)
    if shape.words == _TABLES:
        if selected is None:
            raise NoDatabaseSelected
        tables = selected.vschema.tables if selected.vschema is not None else ()
        return _answer(("Tables",), [(name,) for name in sorted(tables)])
    if shape.words == _KEYSPACES:
        return _answer(
            ("Keyspace", "Sharded", "Foreign Key", "Comment"),
            [(k.name, str(k.sharded).lower(), _FOREIGN_KEY_MODE, "") for k in ordered],
        )
    return _answer(
        ("Keyspace", "Name", "Type", "Params", "Owner"),
        [
            (k.name, name, spec.type, _params(spec.params.items()), spec.owner)
            for k in ordered
            if k.vschema is not None
            for name, spec in sorted(k.vschema.vindexes.items())
        ],
    )


def _params(params: Iterable[tuple[str, str]]) -> str:
    return "; ".join(f"{key}={value}" for key, value in sorted(params))


def _answer(
    names: Sequence[str], rows: Iterable[Sequence[str]]
) -> tuple[Sequence[Column], list[tuple[bytes | None, ...]]]:
    return [Column(name) for name in names], [
        tuple(value.encode() for value in row) for row in rows
    ]
