"""The column with the message key, ``vt_key``, and the indexes that find messages by it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.table_settings import Properties


ORDER_INDEX: Final = "order_idx"
KEY_INDEX: Final = "key_idx"
# The effect of a missing index.
CONSEQUENCES: Final = {
    ORDER_INDEX: "each claim reads all messages of a key",
    KEY_INDEX: "a poll for a key reads all messages that wait",
}
# Their text does not find their values, or no index has them whole.
_NO_KEYS: Final = frozenset(
    {"float", "double", "real", "json", "bit", "geometry", "point", "vector"}
    | {f"{size}{kind}" for size in ("tiny", "", "medium", "long") for kind in ("text", "blob")}
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
    if properties.in_order is not None and types.get("id") in {"float", "double"}:
        return "id must not be FLOAT or DOUBLE with vt_order = strict or vt_max_per_key: it is not equal to its own text"
    if properties.in_order is not None and first_layout:
        return "vt_order = strict and vt_max_per_key need a table with the column priority"
    if properties.fair and first_layout:
        return "vt_fair needs a table with the column priority"
    return None


def index_columns(properties: Properties) -> dict[str, tuple[str, ...]]:
    """Return the indexes that the keys of a table need, their columns by their names.

    One finds the next message if messages wait for others of their key, the other a key's message that is due soonest.
    """
    key = () if properties.key is None else (properties.key.lower(),)
    found = {}
    if properties.in_order is not None:
        found[ORDER_INDEX] = (*key, "time_acked", "epoch", "priority", "time_next")
    if key and (properties.fair or properties.in_order is None):
        # The time of the ack goes first, to skip keys whose messages are all acked.
        found[KEY_INDEX] = ("time_acked", *key, "priority", "time_next")
    return found


def index_definitions(properties: Properties) -> tuple[str, ...]:
    """Return those indexes as CREATE TABLE writes them."""
    return tuple(
        f"KEY `{name}` ({', '.join(map(quote_identifier, columns))})"
        for name, columns in index_columns(properties).items()
    )
