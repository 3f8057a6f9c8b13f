"""A worker's view of its queue: the columns, and the settings in the table's comment."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .message import Message
from .names import quoted, quoted_column


MANAGED = frozenset(
    {"id", "priority", "epoch", "time_next", "time_acked"}
    | {"time_created", "time_scheduled", "state"}
)
LAST_ERROR = "last_error"
ERROR_MAX = 1000  # characters of last_error
PARKED_NS = 9_000_000_000_000_000_000
EXPONENT_MAX = 60
_SETTING = re.compile(r"vt_(ack_wait|min_backoff|max_backoff)\s*=\s*([0-9.]+)")


@dataclass(frozen=True)
class Table:
    """A queue's columns and durations, and the statements on it.

    columns: the columns of a message, without those that streamfrom manages.
    json_columns: the columns to decode as JSON.
    ack_wait_s, min_backoff_s, max_backoff_s: the settings of these names; infinity for no maximum.
    """

    name: str
    columns: tuple[str, ...]
    json_columns: frozenset[str] = frozenset()
    has_last_error: bool = False
    ack_wait_s: float = 30.0
    min_backoff_s: float = 30.0
    max_backoff_s: float = float("inf")

    def stream(self, prefetch: int) -> str:
        """Return the STREAM statement for up to *prefetch* unacked messages; 0 for no limit."""
        columns = ", ".join(map(quoted_column, self.columns))
        listed = f"id, epoch, {columns}" if columns else "id, epoch"
        return f"STREAM /*vt+ PREFETCH={prefetch} */ {listed} FROM {quoted(self.name)}"

    def message(self, row: Sequence[Any]) -> Message:
        """Return the message in a row of the STREAM.

        Raises:
            ValueError: a JSON column cannot be decoded; the text names it.
        """
        values = dict(zip(self.columns, row[2:], strict=True))
        for column in self.json_columns:
            if isinstance(text := values[column], str | bytes | bytearray):
                try:
                    values[column] = json.loads(text)
                except ValueError as error:
                    raise ValueError(f"column {column} is not JSON: {error}") from None
        return Message(self.name, row[0], int(row[1]) + 1, values)

    def acknowledge(self, count: int) -> str:
        """Return the UPDATE that acknowledges *count* ids."""
        return f"UPDATE {quoted(self.name)} SET time_acked = NOW() {_among(count)}"

    def extend(self, count: int) -> str:
        """Return the UPDATE that extends the leases of *count* ids; its first value is the extension in microseconds."""
        return (
            f"UPDATE {quoted(self.name)} SET time_next = time_next + INTERVAL %s MICROSECOND "
            f"{_among(count)}"
        )

    def reschedule(self, *, parked: bool = False) -> str:
        """Return the UPDATE that reschedules or parks one id. Its values: microseconds (unless *parked*), the error, the id."""
        moment = str(PARKED_NS) if parked else "NOW() + INTERVAL %s MICROSECOND"
        error = f", {LAST_ERROR} = %s" if self.has_last_error else ""
        return f"UPDATE {quoted(self.name)} SET time_next = {moment}{error} {_among(1)}"

    def give_back(self, count: int) -> str:
        """Return the UPDATE that makes *count* ids ready at once."""
        return f"UPDATE {quoted(self.name)} SET time_next = 0 {_among(count)}"

    def backoff_s(self, delivery: int) -> float:
        """Return a random delay in seconds until the next delivery, by the same formula as the proxy."""
        exponent = min(max(delivery - 1, 0), EXPONENT_MAX)
        base = min(max(self.ack_wait_s * 2.0**exponent, self.min_backoff_s), self.max_backoff_s)
        wait = base * (1 + random.uniform(0, 1 / 3))  # noqa: S311 - jitter
        if wait > self.max_backoff_s:
            return random.uniform(0.75, 1) * self.max_backoff_s  # noqa: S311
        return wait


def _among(count: int) -> str:
    ids = ", ".join(["%s"] * count)
    return f"WHERE id IN ({ids}) AND time_acked IS NULL"


def describe(
    name: str,
    columns: Sequence[tuple[str, str]],
    definition: str,
    *,
    wanted: Sequence[str] | None,
    json_columns: Sequence[str] | None,
) -> Table:
    """Return the queue *name*.

    columns: names and types from SHOW COLUMNS.
    definition: the text of SHOW CREATE TABLE.
    wanted: the columns to pass to the function; None for all.
    json_columns: the columns to decode; None for those of type JSON.

    Raises:
        ValueError: the table has no such column, or is not a queue.
    """
    if "vitess_message" not in definition:
        raise ValueError(f"table {name} is not a queue: its comment has no vitess_message")
    there = {column: kind.lower() for column, kind in columns}
    own = [column for column in there if column not in MANAGED]
    for column in (*(wanted or ()), *(json_columns or ())):
        if column not in there:
            raise ValueError(f"queue {name} has no column {column}; it has {', '.join(own)}")
    chosen = tuple(own if wanted is None else wanted)
    if json_columns is None:
        decoded = {column for column in chosen if _is_json(column, there[column], definition)}
    else:
        decoded = set(json_columns) & set(chosen)
    settings = {key: float(value) for key, value in _SETTING.findall(definition)}
    ack_wait_s = settings.get("ack_wait", 30.0)
    return Table(
        name,
        chosen,
        frozenset(decoded),
        LAST_ERROR in there,
        ack_wait_s,
        settings.get("min_backoff", ack_wait_s),
        settings.get("max_backoff", float("inf")),
    )


def _is_json(column: str, kind: str, definition: str) -> bool:
    # On MariaDB, JSON is LONGTEXT with a CHECK that names the column.
    return kind == "json" or f"json_valid(`{column}`)" in definition
