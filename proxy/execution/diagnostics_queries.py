"""The diagnostics of a client's last statement, after its connection went to another session.

`SHOW WARNINGS`, `FOUND_ROWS()` and `ROW_COUNT()` query a server about the previous statement. When its connection goes to
another session, the session keeps the diagnostics of that statement (`backend.LastDiagnostics`), and the proxy answers from
them (`DiagnosticsQueries`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.backend import Backend, LastDiagnostics
from streamfrom.proxy.backends.pooling.connection_handover import take_diagnostics
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldType
from streamfrom.proxy.wire.resultset import (
    ColumnDefinition,
    column_definition,
    message_bytes,
    parse_text_row,
    text_row,
)
from streamfrom.sqlparse_ext.errors import StreamfromError, Unsupported
from streamfrom.sqlparse_ext.session.session_calls import inline
from streamfrom.sqlparse_ext.statements import Kind, Statement, Uses


if TYPE_CHECKING:
    from streamfrom.proxy.execution.session_state import SessionState


ASKS_BACK: Final = Uses.FOUND_ROWS | Uses.ROW_COUNT | Uses.DIAGNOSTICS

_GAP: Final = r"(?:\s|/\*.*?\*/)"
_ASKS_WARNINGS: Final = re.compile(
    rf"{_GAP}*SHOW{_GAP}+(?P<count>COUNT\s*\(\s*\*\s*\){_GAP}+)?(?P<kind>WARNINGS|ERRORS)"
    rf"(?:{_GAP}+LIMIT\s+(?:(?P<start>\d+)\s*,\s*)?(?P<rows>\d+)(?:\s+OFFSET\s+(?P<offset>\d+))?)?"
    rf"(?:{_GAP}|;)*".encode(),
    re.IGNORECASE | re.DOTALL,
)
_WARNINGS: Final = (
    ColumnDefinition("Level", length=28),
    ColumnDefinition("Code", type=FieldType.LONG, length=4),
    ColumnDefinition("Message", length=2048),
)


def diagnostics_of_error(error: StreamfromError) -> LastDiagnostics:
    """Return the diagnostics of a statement that the proxy itself refused."""
    code, _ = error.wire_code()
    row = text_row([b"Error", b"%d" % code, message_bytes(str(error))])
    return LastDiagnostics(rows=[row])


def warning(level: str, code: int, message: str) -> bytes:
    """Return a row of SHOW WARNINGS, as a payload. level: Note or Warning."""
    return text_row([level.encode(), b"%d" % code, message_bytes(message)])


async def add_warnings(state: SessionState, warnings: Sequence[bytes]) -> None:
    """Add rows of SHOW WARNINGS to the diagnostics of the statement that has just run on a server."""
    if state.answered_at is not None:
        take_diagnostics(state.answered_at, state)
    diagnostics = state.diagnostics
    assert diagnostics is not None
    await diagnostics.known()
    diagnostics.rows = [*diagnostics.rows, *warnings]


class AnswerHere(Exception):
    """SHOW WARNINGS is answered by the proxy, from *diagnostics*; None for an empty answer."""

    def __init__(self, diagnostics: LastDiagnostics | None) -> None:
        super().__init__()
        self.diagnostics = diagnostics


@dataclass(frozen=True, slots=True)
class DiagnosticsQueries:
    """A query for the diagnostics of the previous statement; a packet of `proxy.execution.prepared_execution`."""

    _state: SessionState
    _statement: Statement

    def packet_for(self, backend: Backend) -> bytes | None:
        """Return the text for the server that ran the previous statement; for another server with the numbers put in."""
        source = self._state.answered_at
        is_select = self._statement.shape.kind is Kind.SELECT
        if source is backend:
            values = {"ROW_COUNT": b"0"} if self._state.answered_since else {}
            carried = backend.found_rows
            if isinstance(carried, LastDiagnostics) and is_select:
                if not carried.is_known:
                    return None
                values["FOUND_ROWS"] = b"%d" % carried.found_rows
            return query(
                inline(self._statement, values) if values and is_select else self._statement.sql
            )
        diagnostics = self._state.diagnostics
        # The diagnostics are still on another connection, or on their way: `prepare_on` fetches them.
        if source is not None or (diagnostics is not None and not diagnostics.is_known):
            return None
        if not is_select:
            return None
        values = _numbers(diagnostics)
        if self._state.answered_since:
            values["ROW_COUNT"] = b"0"
        return query(inline(self._statement, values))

    async def prepare_on(self, backend: Backend) -> None:
        """Wait until the diagnostics are known. Raises AnswerHere if only the proxy can answer."""
        state = self._state
        if state.answered_at is backend:
            # FOUND_ROWS() is of an earlier SELECT, which ran on another connection.
            if isinstance(backend.found_rows, LastDiagnostics):
                await backend.found_rows.known()
            return
        if state.answered_at is not None:
            # Fetched now, before another session or statement clears them there.
            take_diagnostics(state.answered_at, state)
        diagnostics = state.diagnostics
        if diagnostics is not None:
            await diagnostics.known()
        if self._statement.shape.kind is not Kind.SELECT:
            raise AnswerHere(diagnostics)

    def forget_on(self, backend: Backend) -> None:
        """Do nothing: the text has no statement id of a server."""


def warnings_answer(
    statement: Statement, diagnostics: LastDiagnostics | None, capabilities: int
) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """Return columns and rows of SHOW WARNINGS or SHOW ERRORS, as payloads for such a client. Raises Unsupported."""
    asked = _ASKS_WARNINGS.fullmatch(statement.sql)
    if asked is None:
        raise Unsupported(
            f"{statement.shape.verb} of the statement before, which another client's connection or"
            " several shards have run; SHOW WARNINGS shows"
        )
    if diagnostics and diagnostics.columns:
        columns = diagnostics.columns
    else:
        columns = [column_definition(column, capabilities) for column in _WARNINGS]
    rows = diagnostics.rows if diagnostics else ()
    kind = asked["kind"].lower()
    if kind == b"errors":
        rows = [row for row in rows if parse_text_row(row)[0] == b"Error"]
    if asked["count"]:
        name = f"@@session.{kind[:-1].decode()}_count"
        column = ColumnDefinition(
            name, charset=BINARY_CHARSET, type=FieldType.LONGLONG, length=21
        )
        return [column_definition(column, capabilities)], [text_row([b"%d" % len(rows)])]
    start = int(asked["start"] or asked["offset"] or 0)
    return columns, rows[start : start + int(asked["rows"])] if asked["rows"] else rows


def _numbers(diagnostics: LastDiagnostics | None) -> dict[str, bytes]:
    """Return the values by the function or variable that reads them; 0 before the first statement."""
    rows = diagnostics.rows if diagnostics else ()
    errors = sum(parse_text_row(row)[0] == b"Error" for row in rows)
    return {
        "FOUND_ROWS": b"%d" % (diagnostics.found_rows if diagnostics else 0),
        "ROW_COUNT": b"%d" % (diagnostics.row_count if diagnostics else 0),
        "@@WARNING_COUNT": b"%d" % len(rows),
        "@@ERROR_COUNT": b"%d" % errors,
    }
