"""What a statement leaves on its connection for the one behind it: warnings and counts.

A connection that goes to another session fills a `LastDiagnostics` for the one it had; see `proxy.execution.diagnostics_queries`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence


class CarriedFoundRows(int):
    """What FOUND_ROWS() says to a session, and not what its server would say.

    Its last SELECT ran on another connection, and what it has run here since, a write, leaves the
    count as it is.

    Attributes:
        of: what tells the count, once it is known there; None where the number itself does.
    """

    of: LastDiagnostics | None = None

    @property
    def told(self) -> int | None:
        """The count, None as long as it is not known."""
        if self.of is None:
            return int(self)
        return self.of.found_rows if self.of.known.done() else None


class LastDiagnostics:
    """What one statement left.

    Attributes:
        known: done once the rest is; a connection that breaks leaves what there is by then.
        found_rows, row_count: what the functions of these names would say.
        columns, rows: the answer to SHOW WARNINGS, as payloads; no columns when there are none.
    """

    __slots__ = ("columns", "found_rows", "known", "row_count", "rows")

    def __init__(self, known: asyncio.Future[None]) -> None:
        self.known = known
        self.found_rows = 0
        self.row_count = -1
        self.columns: Sequence[bytes] = ()
        self.rows: Sequence[bytes] = ()
