"""Insert new messages into a message table, through the proxy, idempotently: pure Python in a task.

A row whose id is already in the table is left unchanged and is counted as such, which makes any
retry harmless. Inserts do not name a shard: the proxy splits them, whatever the vindex.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pymysql.constants import FIELD_TYPE
from pyspark.sql import DataFrame, functions as F

from streamfrom.spark.endpoint import IN_UTC, Endpoint, ask, changed, marked
from streamfrom.spark.errors import JobError
from streamfrom.spark.fitting import columns_of
from streamfrom.spark.jobs.reading import mapped


# Rows per statement, or fewer if they exceed this many bytes: below any server's packet limit.
INSERT_ROWS: Final = 1000
INSERT_BYTES: Final = 4 << 20
# Rows per task, so that a failed one repeats little and progress is visible.
TASK_ROWS: Final = 20_000
_PARTS_MIN: Final = 2
_TEXTS: Final = frozenset({FIELD_TYPE.VARCHAR, FIELD_TYPE.VAR_STRING, FIELD_TYPE.STRING})
# The schema of a task's counts as plain text, so that the schema and the batches cannot differ.
_COUNTS: Final = "rows bigint, inserted bigint"


def batches(rows: "Sequence[tuple[Any, ...]]") -> "Iterator[Sequence[tuple[Any, ...]]]":
    """Divide *rows* into statements of up to INSERT_ROWS, and INSERT_BYTES unless a single row is larger."""
    start = size = 0
    for place, row in enumerate(rows):
        row_bytes = sum(len(value) for value in row if isinstance(value, str | bytes))
        if place > start and (place - start >= INSERT_ROWS or size + row_bytes > INSERT_BYTES):
            yield rows[start:place]
            start, size = place, 0
        size += row_bytes
    if start < len(rows):
        yield rows[start:]


def insert(
    connection: Any, table: str, names: "Sequence[str]", rows: "Sequence[tuple[Any, ...]]"
) -> int:
    """Insert the *rows* whose ids are not in the table yet; return how many these are. Of rows with the same id the first counts.

    Raises:
        JobError: a row was left out although its id is new: another unique key has its values, or the table considers
            its id equal to another one.
    """
    marks = "(" + ", ".join(["%s"] * len(names)) + ")"
    statement = (
        f"INSERT INTO {marked(table)} ({', '.join(map(marked, names))}) VALUES "  # noqa: S608  quoted
        + ", ".join([marks] * len(rows))
        # Changes nothing, so it counts nothing; a vindex column must not even be named here.
        + " ON DUPLICATE KEY UPDATE epoch = epoch"
    )
    inserted = changed(connection, statement, [value for row in rows for value in row])
    if inserted < len(rows):
        place = list(names).index("id")
        _check_all_there(connection, table, {row[place]: None for row in rows})
    return inserted


def _check_all_there(connection: Any, table: str, ids: "Collection[Any]") -> None:
    """Check that each of *ids* is in the table, and not just another id that the table considers equal."""
    there = f"SELECT id FROM {marked(table)} WHERE id IN "  # noqa: S608  quoted
    told = ask(connection, there + f"({', '.join(['%s'] * len(ids))})", list(ids))
    known = {row[0] for row in told}
    # Usually none. Servers return values of some types in another format, so query each of these.
    rest = [one for one in ids if (one if isinstance(one, bytes) else str(one)) not in known]
    missing = 0
    for one in rest:
        with connection.cursor() as cursor:
            cursor.execute(there + "(%s)", (one,))
            found = cursor.fetchall()
            is_text = isinstance(one, str) and cursor.description[0][1] in _TEXTS
        missing += not found
        if found and is_text and found[0][0].rstrip(" ") != one.rstrip(" "):
            raise JobError(
                f"message {one!r} was left out of {table}, which takes its id for {found[0][0]!r}, by the"
                " collation of the column: make ids differ by more, or drop it, then run again"
            )
    if missing:
        raise JobError(
            f"{missing} of {len(ids)} messages were left out of {table}: a unique key other than id"
            " has their values already; drop that key or those messages, then run again"
        )


def insert_batches(
    endpoint: Endpoint,
    table: str,
    names: "Sequence[str]",
    arrow: "Iterator[pa.RecordBatch]",
    setting: str = IN_UTC,
    converters: "Sequence[Callable[[Any], Any]]" = (),
) -> "Iterator[tuple[int, int]]":
    """Insert the rows of Arrow batches whose ids are new; yield, for each statement, how many rows it has and how many were new.

    converters: the function that converts each column's values for sending; without them values are sent unchanged.

    Raises:
        JobError: a date has a year that no server supports.
    """
    with endpoint.connect(setting=setting) as connection:
        for batch in arrow:
            columns = columns_of(batch)
            if converters:
                columns = [
                    list(map(convert, column))
                    for convert, column in zip(converters, columns, strict=True)
                ]
            for some in batches(list(zip(*columns, strict=True))):
                yield len(some), insert(connection, table, names, some)


def insert_frame(
    frame: "DataFrame", endpoint: Endpoint, table: str, total: int
) -> tuple[int, int]:
    """Insert all rows of *frame* whose ids are new; return how many rows it has, and how many were new.

    The frame's columns have the table's names; it has about *total* rows. If Spark reruns a task, the rows that its first run
    inserted count as already there.
    """
    names = list(frame.columns)
    parts = frame.repartition(max(_PARTS_MIN, total // TASK_ROWS))
    return counted(parts, lambda arrow: insert_batches(endpoint, table, names, arrow))


def counted(
    frame: "DataFrame",
    write: "Callable[[Iterator[pa.RecordBatch]], Iterator[tuple[int, int]]]",
) -> tuple[int, int]:
    """Return the sums of the counts that *write* yields in all tasks of *frame*: the rows, and the new ones."""

    def counts(arrow: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for rows, inserted in write(arrow):
            yield pa.RecordBatch.from_pydict({"rows": [rows], "inserted": [inserted]})

    told = mapped(frame, counts, _COUNTS).agg(F.sum("rows"), F.sum("inserted")).collect()[0]
    return int(told[0] or 0), int(told[1] or 0)


def counts_of(read: int, written: int, inserted: int) -> dict[str, int]:
    """Return the report's counts for *read* rows, of which *written* are distinct messages and *inserted* are new."""
    repeated, there = read - written, written - inserted
    return {"read": read, "repeated": repeated, "inserted": inserted, "already_there": there}
