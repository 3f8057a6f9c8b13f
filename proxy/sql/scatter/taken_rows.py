"""The rows of a query that the proxy keeps for another statement, up to a limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamfrom.proxy.errors import MergeTooLarge
from streamfrom.sqlparse_ext.errors import Unsupported


# What the queries of one statement may give, for an INSERT … SELECT.
INSERT_ROWS_MAX: Final = 5000
INSERT_BYTES_MAX: Final = 2 << 20


class TakenRows:
    """The rows of a query, in the place of a client.

    Attributes:
        what: the name for the rows in the error where there are more than *rows_max*.
        columns: the column definitions, as payloads.
        rows: the rows of the text protocol, as payloads.
        size: the bytes of the rows of all queries so far.
        warnings: the number of warnings of all queries so far.
    """

    binary = False

    def __init__(self, bytes_max: int, what: str, rows_max: int = INSERT_ROWS_MAX) -> None:
        self.what = what
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        self.size = 0
        self._count = 0
        self.columns: Sequence[bytes] = ()
        self.rows: list[bytes] = []
        self.warnings = 0

    def begin(self) -> None:
        """Begin the next query, whose rows count together with those before."""
        self.rows = []

    def head(self, columns: Sequence[bytes]) -> None:
        """Take the column definitions."""
        self.columns = columns

    def more_rows(self, rows: Sequence[bytes]) -> None:
        """Take rows.

        Raises:
            Unsupported, MergeTooLarge: there are too many rows.
        """
        self.rows += rows
        self._count += len(rows)
        self.size += sum(map(len, rows))
        if self._count > self._rows_max:
            raise Unsupported(
                f"{self.what} of more than {self._rows_max} rows over several shards"
            )
        if self.size > self._bytes_max:
            raise MergeTooLarge(self._bytes_max)

    def end_of_rows(self, *, status: int = 0, warnings: int = 0) -> None:
        """Take the number of warnings."""
        self.warnings += warnings

    def take_back(self) -> bool:
        """Drop the rows of this query, and return True."""
        self._count -= len(self.rows)
        self.size -= sum(map(len, self.rows))
        self.begin()
        return True
