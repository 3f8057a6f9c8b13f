"""How the definitions of one message table differ between two shards. Pure.

The engine uses the first shard's definition. A statement affects each shard's rows by that shard's
own definition, so all of them should agree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from streamfrom.engine.messaging.table.table_settings import settings_of


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message_table import RawColumn, RawTable


_WIDTH = re.compile(r"int\(\d+\)")  # MySQL no longer shows it


class Differences(NamedTuple):
    """Sentences about parts that are *here* and not *there*: those that break statements, and others."""

    columns: tuple[str, ...]
    others: tuple[str, ...]


def differences(
    here: RawTable, there: RawTable, place: str, *, same_kind: bool = True
) -> Differences:
    """Return how *here* differs from *there*, the table on the shard called *place*.

    same_kind: both servers are MariaDB, or both MySQL. Otherwise types and defaults are not compared,
        because MariaDB and MySQL spell them differently.
    """
    own, other = _by_name(here), _by_name(there)
    broken = [
        f"no column {column.name}, which {place} has"
        for name, column in other.items()
        if name not in own
    ]
    broken += [
        f"column {column.name}, which {place} has not"
        for name, column in own.items()
        if name not in other
    ]
    for name in own.keys() & other.keys() if same_kind else ():
        mine, theirs = _definition(own[name]), _definition(other[name])
        if mine != theirs:
            broken.append(f"column {own[name].name} is {mine}, on {place} {theirs}")
    lines: list[str] = []
    if here.comment != there.comment:
        mine_set, their_set = settings_of(here.comment), settings_of(there.comment)
        lines += [
            f"{key} is {mine_set.get(key, 'not set')}, on {place} {their_set.get(key, 'not set')}"
            for key in sorted(mine_set.keys() | their_set.keys())
            if mine_set.get(key) != their_set.get(key)
        ] or [f"another comment than on {place}"]
    mine_indexes = {(index.unique, _lower(index.columns)) for index in here.indexes}
    their_indexes = {(index.unique, _lower(index.columns)) for index in there.indexes}
    lines += [
        f"no {'unique ' if unique else ''}index on {', '.join(columns)}, which {place} has"
        for unique, columns in sorted(their_indexes - mine_indexes)
    ]
    lines += [
        f"{'unique ' if unique else ''}index on {', '.join(columns)}, which {place} has not"
        for unique, columns in sorted(mine_indexes - their_indexes)
    ]
    return Differences(tuple(sorted(broken)), tuple(lines))


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def _by_name(table: RawTable) -> dict[str, RawColumn]:
    return {column.name.lower(): column for column in table.columns}


def _definition(column: RawColumn) -> str:
    """Return the definition without differences between the servers' spellings."""
    kind = _WIDTH.sub("int", (column.column_type or column.data_type).lower())
    parts = [kind] if column.nullable else [kind, "not null"]
    default = (column.default or "").strip("'")
    if default and default.upper() != "NULL":
        parts.append(f"default {default.lower()}")
    if "auto_increment" in column.extra.lower():
        parts.append("auto_increment")
    return " ".join(parts)
