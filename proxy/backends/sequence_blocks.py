"""The sequences of one shard: values are reserved in blocks, each in its own short transaction.

The transaction is never a client's: a rollback leaves a gap and repeats no value. Nor do
two proxies, because each reserves its block with the sequence's row locked.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamfrom.engine.sharding.sequence_tables import (
    MARK,
    SequenceBlock,
    check_increment,
    extend,
)
from streamfrom.sqlparse_ext.text.identifiers import literal, quote_identifier


if TYPE_CHECKING:
    from streamfrom.proxy.backends.control_connection import Control


@dataclass(slots=True)
class _Reserved:
    block: SequenceBlock = field(default_factory=SequenceBlock)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Sequences:
    """The blocks of values that this proxy has reserved from the sequences of one server."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._reserved: dict[str, _Reserved] = {}

    async def is_sequence(self, table: str) -> bool:
        """Return whether *table* exists and has the comment of a sequence. Raises BackendUnavailable or BackendError."""
        if table in self._reserved:
            return True
        name = literal(table.encode()).decode()
        rows = await self._control.rows(
            "SELECT table_comment FROM information_schema.tables"  # noqa: S608 - quoted
            f" WHERE table_schema = DATABASE() AND table_name = {name}"
        )
        if not any(MARK in str(comment) for (comment,) in rows):
            return False
        self._reserved.setdefault(table, _Reserved())
        return True

    async def reserve(self, table: str, count: int) -> int:
        """Return the first of *count* consecutive values of *table*, which `is_sequence`.

        Raises SequenceError if *count* or the table's row cannot be used; BackendUnavailable or BackendError: reserved values are lost.
        """
        check_increment(table, count)
        reserved = self._reserved.setdefault(table, _Reserved())
        # One reservation at a time: simultaneous clients would each take a block of their
        # own.
        async with reserved.lock:
            if not reserved.block.has(count):
                reserved.block = await self._extended(table, reserved.block, count)
            first = reserved.block.next_value
            reserved.block = reserved.block.without(count)
            return first

    async def _extended(self, table: str, block: SequenceBlock, count: int) -> SequenceBlock:
        name = quote_identifier(table)

        def extended(rows: list[tuple[Any, ...]]) -> SequenceBlock:
            return extend(table, block, [(row[0], row[1]) for row in rows], count)

        rows = await self._control.change(
            f"SELECT next_id, cache FROM {name} WHERE id = 0 FOR UPDATE",  # noqa: S608 - quoted
            lambda rows: f"UPDATE {name} SET next_id = {extended(rows).end} WHERE id = 0",  # noqa: S608
        )
        return extended(rows)
