"""Replies about keyspaces: `SHOW DATABASES`, Vitess's `SHOW VITESS_…` and `SHOW VSCHEMA …`. Pure.

Columns and order are Vitess's. As in Vitess, LIKE filters (tablets by host name), and WHERE does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.proxy.errors import NoDatabaseSelected, NoSuchVschemaTable, UnknownDatabase
from streamfrom.proxy.wire.resultset import ColumnDefinition, Table, table_of_texts
from streamfrom.sqlparse_ext.statements import Kind, Shape, Slot, Statement, TableRef
from streamfrom.sqlparse_ext.text.identifiers import literal
from streamfrom.sqlparse_ext.text.lexer import locate
from streamfrom.sqlparse_ext.text.tokens import statement_tokens


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace


_VERBS: Final = frozenset({("DATABASES",), ("SCHEMAS",)})
_CHOOSES: Final = frozenset({(), ("LIKE",), ("WHERE",)})
# Names of schemas are compared without case, as by servers, whatever the client's own collation.
_NAME: Final = b"SELECT CONVERT(%s USING utf8mb4) COLLATE utf8mb4_general_ci"


def is_show_databases(shape: Shape) -> bool:
    """Return whether *shape* is SHOW DATABASES or SCHEMAS, alone, with LIKE or with WHERE."""
    words = shape.words
    return shape.kind is Kind.SHOW and words[:1] in _VERBS and words[1:2] in _CHOOSES


def show_databases(statement: Statement, keyspaces: Iterable[Keyspace]) -> Table:
    """Return the one column and its rows; with WHERE, all of them."""
    title, names = "Database", _names(keyspaces)
    if statement.shape.words[1:2] == ("LIKE",):
        pattern = like(statement)
        title += f" ({pattern_text(statement)})"
        names = [name for name in names if pattern.fullmatch(name)]
    return [ColumnDefinition(title, table="SCHEMATA")], [(name.encode(),) for name in names]


def chooses_databases(shape: Shape) -> bool:
    """Return whether *shape* is SHOW DATABASES WHERE."""
    return is_show_databases(shape) and shape.words[1:2] == ("WHERE",)


def chosen_databases(statement: Statement, keyspaces: Iterable[Keyspace]) -> bytes:
    """Return a query with which a server answers a statement that `chooses_databases`.

    The WHERE may be any expression, so a server evaluates it.
    """
    tokens = statement_tokens(statement.shape.template)
    where = next(token for token in tokens if token.key == "WHERE")
    (start,) = locate(statement.sql, statement.mode, (where.start,))
    first, *others = (_NAME % literal(name.encode()) for name in _names(keyspaces))
    rows = b" UNION ALL ".join((first + b" AS `Database`", *others))
    return b"SELECT `Database` FROM (%s) AS `SCHEMATA` %s" % (rows, statement.sql[start:])


def _names(keyspaces: Iterable[Keyspace]) -> list[str]:
    return sorted({*(keyspace.name for keyspace in keyspaces), "information_schema"})


def like(statement: Statement) -> re.Pattern[str]:
    """Return the pattern of the statement's LIKE."""
    return like_pattern(pattern_text(statement))


def like_pattern(text: str) -> re.Pattern[str]:
    """Return *text*, a pattern of LIKE, as a regex: % is any characters, _ is one, \\ makes the next one literal."""
    parts = re.findall(r"\\.|.", text, re.DOTALL)
    regex = {"%": ".*", "_": "."}
    return re.compile("".join(regex.get(p, re.escape(p[-1:])) for p in parts), re.DOTALL)


def pattern_text(statement: Statement) -> str:
    """Return the text of that literal, which servers repeat in the name of the column."""
    return (statement.text(Slot(0)) if statement.literals else "") or ""


_TABLETS: Final = "VITESS_TABLETS"
_SHARDS: Final = "VITESS_SHARDS"
_TABLET_COLUMNS: Final = (
    *("Cell", "Keyspace", "Shard", "TabletType"),
    *("State", "Alias", "Hostname", "PrimaryTermStartTime"),
)


class Tablet(NamedTuple):
    """A server of a shard, shown as one of Vitess's tablets."""

    keyspace: str
    shard: str
    is_primary: bool
    server: str  # its address, `host:port` or the path of its socket
    host: str
    is_serving: bool  # whether statements are sent to it


def is_show_vitess(shape: Shape) -> bool:
    """True for the forms that `show_vitess` answers."""
    return shape.verb == "SHOW" and shape.words[:1] in ((_TABLETS,), (_SHARDS,))


def show_vitess(
    statement: Statement, keyspaces: Iterable[Keyspace], tablets: Iterable[Tablet]
) -> Table:
    """Return columns and rows for a statement whose shape `is_show_vitess`.

    *keyspaces* and *tablets* are those in the user's sight.

    There are no cells here, so `Cell` is empty; so is `PrimaryTermStartTime`, because no server shows when it became the primary.
    """
    words = statement.shape.words
    chosen = like(statement) if words[1:2] == ("LIKE",) else None
    if words[0] == _SHARDS:
        ordered = sorted(keyspaces, key=lambda keyspace: keyspace.name)
        names = [f"{each.name}/{shard.name}" for each in ordered for shard in each.shards]
        return table_of_texts(
            ("Shards",), [(name,) for name in names if not chosen or chosen.fullmatch(name)]
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
    """Return whether `show_vschema` answers *shape*."""
    if shape.verb != "SHOW":
        return False
    is_on_table = shape.words[:3] == _VINDEXES_ON and bool(shape.tables)
    return is_on_table or shape.words in {_TABLES, _VINDEXES, _KEYSPACES}


def show_vschema(
    shape: Shape, keyspaces: Iterable[Keyspace], selected: Keyspace | None
) -> Table:
    """Return columns and rows for a shape that `is_show_vschema`; *keyspaces* are visible to the user, *selected* is the session's.

    TABLES and VINDEXES ON without a keyspace raise NoDatabaseSelected; VINDEXES ON also raises UnknownDatabase or NoSuchVschemaTable.
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
                cv.column,
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
