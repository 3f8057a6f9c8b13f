"""Rows of a query that go no further than the proxy, for another statement: as many as may be, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import MergeTooLarge
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from collections.abc import Sequence


# What the queries of one statement may give: a server reads each row as a SELECT of its own.
ROWS_MAX: Final = 5000
BYTES_MAX: Final = 2 << 20


class TakenRows:
    """The rows of a query, in the place of a client.

    Attributes:
        what: what is said to be too much where there are too many.
        columns: the column definitions, as payloads.
        rows: the rows of the text protocol, as payloads.
        warnings: how many warnings all queries so far had.
    """

    binary = False

    def __init__(self, bytes_max: int, what: str) -> None:
        self.what = what
        self._bytes_max = bytes_max
        self._bytes = 0
        self._count = 0
        self.columns: Sequence[bytes] = ()
        self.rows: list[bytes] = []
        self.warnings = 0

    def begin(self) -> None:
        """Begin the next query; its rows count on."""
        self.rows = []

    def head(self, columns: Sequence[bytes]) -> None:
        """Take the column definitions."""
        self.columns = columns

    def more_rows(self, rows: Sequence[bytes]) -> None:
        """Take rows.

        Raises:
            Unsupported, MergeTooLarge: they are too many.
        """
        self.rows += rows
        self._count += len(rows)
        self._bytes += sum(map(len, rows))
        if self._count > ROWS_MAX:
            raise Unsupported(f"{self.what} of more than {ROWS_MAX} rows over several shards")
        if self._bytes > self._bytes_max:
            raise MergeTooLarge(self._bytes_max)

    def end_of_rows(self, *, status: int = 0, warnings: int = 0) -> None:
        """Take the number of warnings."""
        self.warnings += warnings

    def take_back(self) -> bool:
        """Forget the rows of this query, and return True."""
        self._count -= len(self.rows)
        self._bytes -= sum(map(len, self.rows))
        self.begin()
        return True
