"""The diagnostics area of a session's last statement: its warnings, its count of rows, its FOUND_ROWS().

A connection that goes to another session fills a `LastDiagnostics` for the session that had it;
`proxy.execution.diagnostics_queries` answers from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    import asyncio


class CarriedFoundRows(int):
    """The FOUND_ROWS() of a session whose last SELECT ran on another connection.

    The server would give another number. The session has run writes here since, and a write
    leaves FOUND_ROWS() as it is.

    Attributes:
        of: the diagnostics that will hold the count; None where the number itself is the count.
    """

    of: LastDiagnostics | None = None

    @property
    def told(self) -> int | None:
        """The count; None as long as the server has not answered."""
        if self.of is None:
            return int(self)
        return self.of.found_rows if self.of.known.done() else None


@dataclass(slots=True, eq=False)
class LastDiagnostics:
    """The diagnostics area of one statement."""

    # Done once the other attributes are final, also when the connection broke before.
    known: asyncio.Future[None]
    # The values of FOUND_ROWS() and ROW_COUNT().
    found_rows: int = 0
    row_count: int = -1
    # The answer to SHOW WARNINGS, as payloads; empty without a warning.
    columns: Sequence[bytes] = ()
    rows: Sequence[bytes] = ()
