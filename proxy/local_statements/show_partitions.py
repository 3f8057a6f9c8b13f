"""SHOW QUEUE PARTITIONS FROM a queue: its partitions on each shard, and what holds them back. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from streamfrom.engine.messaging.upkeep.partitions import (
    SECOND_NS,
    PartitionCensus,
    held_back,
    rest_held_back,
)
from streamfrom.proxy.wire.resultset import ColumnDefinition
from streamfrom.sqlparse_ext.statements import Kind, Shape


COLUMNS: Final = (
    ColumnDefinition("Shard"),
    ColumnDefinition("Partition"),
    ColumnDefinition("Range_end"),
    ColumnDefinition("Unacked"),
    ColumnDefinition("Acked_too_recently"),
    ColumnDefinition("Blocked_by", length=512),
)
_DONE: Final = "not at all: the next purge drops it, unless a transaction holds the table"


def is_show_partitions(shape: Shape) -> bool:
    """True for SHOW QUEUE PARTITIONS."""
    return shape.kind is Kind.SHOW and shape.words[:2] == ("QUEUE", "PARTITIONS")


def partition_rows(shard: str, census: PartitionCensus) -> Iterator[tuple[bytes | None, ...]]:
    """Return a row for each partition of a shard.

    Rows are counted in partitions that are old enough to be dropped; elsewhere there is NULL.
    """
    for name, until_ns in census.partitions.timed:
        until = datetime.fromtimestamp(until_ns // SECOND_NS, UTC).strftime("%Y-%m-%d %H:%M:%S")
        left = census.left.get(name)
        if left is None:
            yield _row(shard, name, until, None, None, None)
        else:
            counts = str(left.unacked), str(left.young)
            yield _row(shard, name, until, *counts, held_back(left) or _DONE)
    yield _row(
        shard, census.partitions.rest, None, None, None, rest_held_back(census.rest_rows)
    )


def _row(*values: str | None) -> tuple[bytes | None, ...]:
    return tuple(None if value is None else value.encode() for value in values)
