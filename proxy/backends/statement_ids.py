"""The prepared statements of one backend connection: from text to the server's id. Pure.

Sessions that share a connection share its prepared statements: the same text, in
the same database and read under the same variables, is the same statement. The server limits
their number over all connections (`max_prepared_stmt_count`, 16382 by default), so a
connection keeps those used last, of large texts fewer. A dropped statement is closed with the next COM_STMT_PREPARE.
All are closed if the server reports that there are too many.

MySQL makes a parameter a number or a time once one was bound to it, and converts later texts to that. So a statement is
prepared again for values of other kinds: one session's values must not change another session's statement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from streamfrom.proxy.wire.binary_parameters import kinds_together


# 64 connections to one server stay below the default of max_prepared_stmt_count.
KEPT_MAX: Final = 250
# The bytes of the texts: 4 KB for each statement. No client's budget counts them, because they outlive the client.
KEPT_BYTES_MAX: Final = 1 << 20


class StatementKey(NamedTuple):
    """The key of a prepared statement; statements with the same key are one on a connection."""

    text: bytes
    database: str | None  # the database of unqualified names
    # The variables under which the text was read, see `Settings.reading`.
    reading: tuple[str | None, ...]


@dataclass(slots=True, eq=False)
class _Prepared:
    id: int
    kinds: bytes = b""  # MySQL's kinds of its parameters; empty before the first execution


@dataclass(slots=True, eq=False)
class StatementIds:
    """The prepared statements of one connection."""

    kept_max: int = KEPT_MAX
    # Least recently used first.
    _ids: dict[StatementKey, _Prepared] = field(default_factory=dict)
    # The ids to close, oldest first.
    _stale: list[int] = field(default_factory=list)
    _text_bytes: int = 0

    def __len__(self) -> int:
        return len(self._ids)

    def get(self, key: StatementKey, kinds: bytes = b"") -> int | None:
        """Return the server's id of a statement, None when it is not prepared here.

        kinds: those of the parameters of the coming execution, on a server that remembers them.
        """
        kept = self._ids.pop(key, None)
        if kept is None:
            return None
        self._ids[key] = kept
        if kinds != kept.kinds and kinds:
            together = kinds_together(kept.kinds or kinds, kinds)
            if together is None:
                self.drop(key)
                return None
            kept.kinds = together
        return kept.id

    def put(self, key: StatementKey, statement_id: int) -> None:
        """Keep an id; the one before it of the same statement is stale."""
        self.drop(key)
        self._ids[key] = _Prepared(statement_id)
        self._text_bytes += len(key.text)
        while len(self._ids) > self.kept_max or (
            self._text_bytes > KEPT_BYTES_MAX and len(self._ids) > 1
        ):
            self.drop(next(iter(self._ids)))

    def drop(self, key: StatementKey) -> None:
        """Forget a statement that must not be executed again."""
        found = self._ids.pop(key, None)
        if found is not None:
            self._stale.append(found.id)
            self._text_bytes -= len(key.text)

    def clear(self) -> None:
        """Note that a reset has closed all statements."""
        self._ids.clear()
        self._stale.clear()
        self._text_bytes = 0

    def release(self) -> bool:
        """Close all statements, and prepare them again when they run; False if there are none."""
        self._stale += (kept.id for kept in self._ids.values())
        self._ids.clear()
        self._text_bytes = 0
        return bool(self._stale)

    def take_stale(self) -> list[int]:
        """Return and forget the ids to close."""
        stale, self._stale = self._stale, []
        return stale
