"""The column that messages of a kind share, ``vt_key``, and the index that finds them in order. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamfrom.engine.messaging.table_settings import Properties


ORDER_INDEX: Final = "order_idx"
# Their values are not found by their text, or by no index that has them whole.
_NO_KEYS: Final = frozenset(
    {"float", "double", "real", "json", "bit", "geometry", "point", "vector"}
    | {
        "tinytext",
        "text",
        "mediumtext",
        "longtext",
        "tinyblob",
        "blob",
        "mediumblob",
        "longblob",
    }
)


def fault(
    properties: Properties, types: Mapping[str, str], *, first_layout: bool = False
) -> str | None:
    """Return why messages cannot be ordered, None if they can.

    types: the types of the table's columns, by their names, all in lower case.
    """
    key = properties.key
    if key is not None and key.lower() not in types:
        return f"vt_key must be a column of the table, not '{key}'"
    if key is not None and (kind := types[key.lower()]) in _NO_KEYS:
        return f"vt_key must be a column that an index has whole, not {key} {kind.upper()}"
    if properties.in_order is not None and first_layout:
        return "vt_order = strict and vt_key_in_flight need a table with the column priority"
    return None


def index_columns(properties: Properties) -> tuple[str, ...]:
    """Return the columns of the index by which a claim finds what goes next; none where nothing is ordered."""
    if properties.in_order is None:
        return ()
    own = () if properties.key is None else (properties.key.lower(),)
    return (*own, "time_acked", "epoch", "priority", "time_next")


def index_definition(properties: Properties) -> str | None:
    """Return that index as CREATE TABLE writes it; None where nothing is ordered."""
    columns = index_columns(properties)
    if not columns:
        return None
    return f"KEY `{ORDER_INDEX}` ({', '.join(map(quote_identifier, columns))})"


def index_of(
    properties: Properties, indexes: Iterable[tuple[str, tuple[str, ...]]]
) -> str | None:
    """Return which of *indexes*, names and columns, begins with those columns; None for none."""
    wanted = index_columns(properties)
    fitting = (
        name
        for name, columns in indexes
        if tuple(column.lower() for column in columns[: len(wanted)]) == wanted
    )
    return next(fitting, None) if wanted else None


def advice(table: str, properties: Properties) -> str:
    """Return what to say of a table without that index."""
    columns = ", ".join(index_columns(properties))
    return (
        f"no index on {columns}: each claim reads all messages of a key;"
        f" ALTER TABLE {quote_identifier(table)} ADD INDEX {ORDER_INDEX} ({columns})"
    )
