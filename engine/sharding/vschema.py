"""Vitess's VSchema JSON: which tables are sharded, and by which vindex.

proto3 JSON, so ``column_vindexes`` and ``columnVindexes`` are the same field and unknown
fields do not matter. The error texts are Vitess's.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from streamfrom.engine.errors import VindexError, VschemaError
from streamfrom.engine.sharding.vindex import Vindex, is_loose, is_of_strings, make_vindex
from streamfrom.sqlparse_ext.stored_forms import ColumnType, StoredForm, folds_case, stored_form


_TABLE_TYPES: Final = ("", "sequence", "reference")
# vschema.proto's enumeration; unspecified is unmanaged.
_FOREIGN_KEY_MODES: Final = ("disallow", "unmanaged", "managed")
_HUMP = re.compile(r"[A-Z]")
# The keys of vschema.proto, with those of the objects below them; "*" is any name.
_NONE: Final[Mapping[str, Any]] = {}
_TABLE_KEYS: Final = {
    "column_vindexes": dict.fromkeys(("column", "columns", "name"), _NONE),
    "auto_increment": dict.fromkeys(("column", "sequence"), _NONE),
    **dict.fromkeys(
        ("type", "columns", "pinned", "column_list_authoritative", "source"), _NONE
    ),
}
_KEYS: Final[Mapping[str, Any]] = {
    "vindexes": {"*": dict.fromkeys(("type", "params", "owner"), _NONE)},
    "tables": {"*": _TABLE_KEYS},
    **dict.fromkeys(("sharded", "foreign_key_mode", "require_explicit_routing"), _NONE),
    "multi_tenant_spec": _NONE,
}


@dataclass(frozen=True, slots=True)
class VindexSpec:
    """A vindex with its name."""

    name: str
    type: str
    params: Mapping[str, str]
    owner: str
    vindex: Vindex


@dataclass(frozen=True, slots=True)
class ColumnVindex:
    """The column, in lower case, that a vindex reads in one table.

    type: the column's type; None if it is not known.
    folds: values that the column's collation finds equal have one keyspace id; only a queue's own comment can say so,
        since a vschema's vindex takes the bytes that Vitess takes.
    """

    column: str
    vindex: VindexSpec
    type: ColumnType | None = None
    folds: bool = False

    @property
    def form(self) -> StoredForm:
        """The stored forms of the column's values, by which the vindex places rows."""
        holds_strings = is_of_strings(self.vindex.vindex)
        return stored_form(self.type, holds_strings=holds_strings, folds=self.folds)


@dataclass(frozen=True, slots=True)
class AutoIncrement:
    """A column, in lower case, that is filled from a sequence (``table`` or ``ks.table``)."""

    column: str
    sequence: str


@dataclass(frozen=True, slots=True)
class TableRouting:
    """Where the rows of one table live. type is "", "sequence" or "reference"."""

    name: str
    type: str
    column_vindexes: tuple[ColumnVindex, ...]
    auto_increment: AutoIncrement | None
    pinned: bytes | None

    @property
    def primary(self) -> ColumnVindex | None:
        """Return the vindex that decides the shard, or None for a table that has none."""
        return self.column_vindexes[0] if self.column_vindexes else None


@dataclass(frozen=True, slots=True)
class VSchema:
    """The routing of one keyspace. foreign_key_mode is only shown."""

    sharded: bool
    vindexes: Mapping[str, VindexSpec]
    tables: Mapping[str, TableRouting]
    foreign_key_mode: str = "unmanaged"


def parse_vschema(text: str, keyspace: str = "") -> VSchema:
    """Return the vschema in *text*, or raise VschemaError with the first fault."""
    where = f"vschema of keyspace '{keyspace}'" if keyspace else "vschema"
    try:
        root = _fields(json.loads(text), where)
    except json.JSONDecodeError as error:
        raise VschemaError(f"{where} is no JSON: {error}") from error
    sharded = _typed(root, "sharded", bool, where) or False
    vindexes = {
        name: _vindex(name, _fields(raw, f"vindex {name}"))
        for name, raw in (_typed(root, "vindexes", dict, where) or {}).items()
    }
    tables = {
        name: _table(name, _fields(raw, f"table {name}"), vindexes, sharded=sharded)
        for name, raw in (_typed(root, "tables", dict, where) or {}).items()
    }
    return VSchema(sharded, vindexes, tables, _foreign_key_mode(root, where))


def unknown_keys(text: str) -> list[str]:
    """Return the keys of a vschema that have no meaning, which Vitess ignores too, each with a similar known key."""
    return list(_unknown_keys(json.loads(text), _KEYS, ""))


def _unknown_keys(raw: dict[str, Any], known: Mapping[str, Any], place: str) -> Iterator[str]:
    for key, value in raw.items():
        name = "*" if "*" in known else _snake_case(key)
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1) or sorted(known)
            hint = (
                f"did you mean {near[0]}?"
                if len(near) == 1
                else f"expected one of {', '.join(near)}"
            )
            yield f"{place}{key}: unknown key; {hint}"
        elif known[name]:
            for each in value if isinstance(value, list) else [value or {}]:
                yield from _unknown_keys(each, known[name], f"{place}{key}.")


def _foreign_key_mode(root: dict[str, Any], where: str) -> str:
    mode = _typed(root, "foreign_key_mode", str, where) or "unspecified"
    if mode == "unspecified":
        return "unmanaged"
    if mode not in _FOREIGN_KEY_MODES:
        raise VschemaError(
            f"foreign_key_mode of {where} must be one of {', '.join(_FOREIGN_KEY_MODES)}"
        )
    return mode


def _vindex(name: str, raw: dict[str, Any]) -> VindexSpec:
    where = f"vindex {name}"
    vindex_type = _typed(raw, "type", str, where) or ""
    params = {
        key: str(value) for key, value in (_typed(raw, "params", dict, where) or {}).items()
    }
    try:
        vindex = make_vindex(vindex_type)
    except VindexError as error:
        raise VschemaError(str(error)) from error
    return VindexSpec(name, vindex_type, params, _typed(raw, "owner", str, where) or "", vindex)


def _table(
    name: str, raw: dict[str, Any], vindexes: Mapping[str, VindexSpec], *, sharded: bool
) -> TableRouting:
    where = f"table {name}"
    table_type = _typed(raw, "type", str, where) or ""
    if table_type not in _TABLE_TYPES:
        raise VschemaError(f"unidentified table type {table_type}")
    pinned_text = _typed(raw, "pinned", str, where)
    # The texts here are Vitess's own (go/vt/vtgate/vindexes/vschema.go), so that a web search for them
    # helps.
    if table_type == "sequence" and sharded and not pinned_text:
        raise VschemaError(
            f"sequence table has to be in an unsharded keyspace or must be pinned: {name}"
        )
    entries = _typed(raw, "column_vindexes", list, where) or []
    column_vindexes = tuple(
        _column_vindex(name, index, _fields(entry, where), vindexes)
        for index, entry in enumerate(entries)
    )
    if sharded and table_type == "" and not pinned_text and not column_vindexes:
        raise VschemaError(f"missing primary col vindex for table: {name}")
    seen: set[str] = set()
    for column in _typed(raw, "columns", list, where) or []:
        column_name = str(_fields(column, where).get("name", ""))
        if column_name.lower() in seen:
            raise VschemaError(f"duplicate column name '{column_name}' for table: {name}")
        seen.add(column_name.lower())
    auto_increment = None
    if (auto := _typed(raw, "auto_increment", dict, where)) is not None:
        auto = _fields(auto, where)
        auto_increment = AutoIncrement(
            (_typed(auto, "column", str, where) or "").lower(),
            _typed(auto, "sequence", str, where) or "",
        )
    return TableRouting(
        name, table_type, column_vindexes, auto_increment, _pinned(name, pinned_text)
    )


def _column_vindex(
    table: str, index: int, raw: dict[str, Any], vindexes: Mapping[str, VindexSpec]
) -> ColumnVindex:
    where = f"table {table}"
    name = _typed(raw, "name", str, where) or ""
    spec = vindexes.get(name)
    if spec is None:
        raise VschemaError(f"vindex {name} not found for table {table}")
    # An owned vindex looks rows up in a table that is filled with them, so it cannot decide
    # where a new row goes.
    if index == 0 and spec.owner == table:
        raise VschemaError(f"primary vindex {name} cannot be owned for table {table}")
    column = _typed(raw, "column", str, where)
    columns = _typed(raw, "columns", list, where)
    if column and columns:
        raise VschemaError(
            f"can't use column and columns at the same time in vindex ({name}) and table ({table})"
        )
    names = [column] if column else columns or []
    if not names:
        raise VschemaError(
            f"must specify at least one column for vindex ({name}) and table ({table})"
        )
    if len(names) > 1:
        raise VschemaError(f"vindex {name} of table {table} takes 1 column, not {len(names)}")
    return ColumnVindex(str(names[0]).lower(), spec)


def _pinned(table: str, text: str | None) -> bytes | None:
    try:
        return bytes.fromhex(text) if text else None
    except ValueError as error:
        raise VschemaError(f"invalid pinned keyspace id '{text}' of table: {table}") from error


def _fields(raw: object, where: str) -> dict[str, Any]:
    """Return a JSON object with its field names in snake case."""
    if not isinstance(raw, dict):
        raise VschemaError(f"{where} must be a JSON object")
    # Protobuf's JSON has two spellings, columnVindexes and column_vindexes, and reads both.
    return {_snake_case(key): raw[key] for key in raw}


def _snake_case(key: str) -> str:
    return _HUMP.sub(lambda hump: "_" + hump[0].lower(), key)


def _typed(raw: dict[str, Any], key: str, kind: type, where: str) -> Any:
    """Return a field, None when it is absent or null; VschemaError for another type."""
    value = raw.get(key)
    if value is not None and not isinstance(value, kind):
        raise VschemaError(f"{key} of {where} must be a {kind.__name__}")
    return value


def with_queues(
    vschema: VSchema,
    shard_by: Mapping[str, tuple[str, str]],
    types: Mapping[str, Mapping[str, ColumnType]],
) -> VSchema:
    """Return *vschema* with the tables of *shard_by* that it does not name itself, and with the types of vindex columns.

    shard_by: a vindex and a column for each table. A table whose vindex does not exist is left out.
    types: the types of columns, in lower case, of each table for which they are known.
    """
    tables = dict(vschema.tables)
    for name, (vindex, column) in shard_by.items():
        spec = vindex_of(vschema.vindexes, vindex)
        if name not in vschema.tables and spec is not None:
            tables[name] = TableRouting(name, "", (placed_by(spec, column, None),), None, None)
    for name, columns in types.items():
        routing = tables.get(name)
        if routing is None or not routing.column_vindexes:
            continue
        first, *others = routing.column_vindexes
        known = columns.get(first.column)
        if name in vschema.tables:
            first = replace(first, type=known)
        else:
            first = placed_by(first.vindex, first.column, known)
        tables[name] = replace(routing, column_vindexes=(first, *others))
    return replace(vschema, tables=tables) if tables != vschema.tables else vschema


def placed_by(spec: VindexSpec, column: str, column_type: ColumnType | None) -> ColumnVindex:
    """Return how a queue whose own comment shards it places its rows."""
    folds = column_type is not None and (is_loose(spec.vindex) or not folds_case(column_type))
    return ColumnVindex(column.lower(), spec, column_type, folds)


def vindex_of(vindexes: Mapping[str, VindexSpec], name: str) -> VindexSpec | None:
    """Return the vindex that *vindexes* call *name*, or whose type that is; else None."""
    known = vindexes.get(name)
    if known is None:
        try:
            known = VindexSpec(name, name, {}, "", make_vindex(name))
        except VindexError:
            return None
    return known
