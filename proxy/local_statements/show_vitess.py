"""`SHOW VITESS_TABLETS`, `VITESS_SHARDS`, `VITESS_TARGET`, `KEYSPACES` and `VSCHEMA`, with Vitess's columns and order. Pure.

As in Vitess LIKE chooses, tablets by their host's name, and WHERE does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.proxy.errors import NoDatabaseSelected, NoSuchVschemaTable, UnknownDatabase
from streamfrom.proxy.local_statements.show_databases import like
from streamfrom.proxy.wire.resultset import Table, table_of_texts


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace
    from streamfrom.sqlparse_ext.statements import Shape, Statement, TableRef


_TABLETS: Final = "VITESS_TABLETS"
_SHARDS: Final = "VITESS_SHARDS"
_TARGET: Final = ("VITESS_TARGET",)
_LISTS: Final = frozenset({_TABLETS, _SHARDS, "KEYSPACES", "VITESS_KEYSPACES"})
_TABLET_COLUMNS: Final = (
    *("Cell", "Keyspace", "Shard", "TabletType"),
    *("State", "Alias", "Hostname", "PrimaryTermStartTime"),
)


class Tablet(NamedTuple):
    """A server of a shard: what Vitess has a tablet in front of.

    Attributes:
        server: where it listens, `host:port` or the path of its socket.
        is_serving: statements are sent to it.
    """

    keyspace: str
    shard: str
    is_primary: bool
    server: str
    host: str
    is_serving: bool


def is_show_vitess(shape: Shape) -> bool:
    """True for the forms that `show_vitess` answers."""
    words = shape.words
    if shape.verb != "SHOW" or not words:
        return False
    return words == _TARGET or words[0] in _LISTS


def show_vitess(
    statement: Statement, keyspaces: Iterable[Keyspace], tablets: Iterable[Tablet], target: str
) -> Table:
    """Return columns and rows for a statement whose shape `is_show_vitess`.

    *keyspaces* and *tablets* are those in the user's sight, *target* is the session's own as the client named it, "" for none.

    There are no cells here, so `Cell` is empty; so is `PrimaryTermStartTime`, as no server shows when it became the primary.
    """
    words = statement.shape.words
    if words == _TARGET:
        return table_of_texts(("Target",), [(target,)])
    chosen = like(statement) if words[1:2] == ("LIKE",) else None
    if words[0] != _TABLETS:
        ordered = sorted(keyspaces, key=lambda keyspace: keyspace.name)
        if words[0] == _SHARDS:
            column = "Shards"
            names = [f"{each.name}/{shard.name}" for each in ordered for shard in each.shards]
        else:
            column, names = "Database", [each.name for each in ordered]
        return table_of_texts(
            (column,), [(name,) for name in names if not chosen or chosen.fullmatch(name)]
        )
    return table_of_texts(
        _TABLET_COLUMNS,
        [
            (
                "",
                tablet.keyspace,
                tablet.shard,
                "PRIMARY" if tablet.is_primary else "REPLICA",
                "SERVING" if tablet.is_serving else "NOT_SERVING",
                tablet.server,
                tablet.host,
                "",
            )
            for tablet in tablets
            if not chosen or chosen.fullmatch(tablet.host)
        ],
    )


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
