"""The diagnostics of a client's last statement, after its connection went to another session.

`SHOW WARNINGS`, `FOUND_ROWS()` and `ROW_COUNT()` ask a server about the statement before. At a
handover the session takes that statement's diagnostics along (`diagnostics_area.LastDiagnostics`),
and the proxy answers from there (`DiagnosticsQueries`).
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.diagnostics_area import CarriedFoundRows, LastDiagnostics
from streamfrom.proxy.backends.handover import take_diagnostics
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldType
from streamfrom.proxy.wire.resultset import (
    ColumnDefinition,
    column_definition,
    message_bytes,
    parse_text_row,
    text_row,
)
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.session.inline import inline
from streamfrom.sqlparse_ext.statements import Kind, Uses


if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.sqlparse_ext.errors import StreamfromError
    from streamfrom.sqlparse_ext.statements import Statement


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


def left_by_several() -> LastDiagnostics:
    """Return empty diagnostics for a statement of several shards; `SessionConnections.take_warnings` fills them."""
    left = LastDiagnostics(asyncio.get_running_loop().create_future())
    left.known.set_result(None)
    return left


def left_by_error(error: StreamfromError) -> LastDiagnostics:
    """Return the diagnostics of a statement that the proxy itself refused."""
    left = left_by_several()
    code, _ = error.wire_code()
    left.rows = [text_row([b"Error", b"%d" % code, message_bytes(str(error))])]
    return left


class AnswerHere(Exception):
    """SHOW WARNINGS is answered by the proxy, from *left*; None for an empty answer."""

    def __init__(self, left: LastDiagnostics | None) -> None:
        super().__init__()
        self.left = left


class DiagnosticsQueries:
    """A statement that asks for the diagnostics of the one before; a packet of `proxy.execution.prepared_execution`."""

    __slots__ = ("_state", "_statement")

    def __init__(self, state: SessionState, statement: Statement) -> None:
        self._state = state
        self._statement = statement

    def packet_for(self, backend: Backend) -> bytes | None:
        """Return the text for the server that ran that statement; for another with the numbers in it."""
        source = self._state.answered_at
        if source is backend:
            found = backend.found_rows
            if (
                isinstance(found, CarriedFoundRows)
                and self._statement.shape.kind is Kind.SELECT
            ):
                count = found.told
                if count is None:
                    return None
                return query(inline(self._statement, {"FOUND_ROWS": b"%d" % count}))
            return query(self._statement.sql)
        left = self._state.left
        if source is not None or (left is not None and not left.known.done()):
            return None
        if self._statement.shape.kind is not Kind.SELECT:
            return None
        return query(inline(self._statement, _numbers(left)))

    async def prepare_on(self, backend: Backend) -> None:
        """Wait until the diagnostics are known. Raises AnswerHere for what only the proxy can answer."""
        state = self._state
        if state.answered_at is backend:
            # FOUND_ROWS() is that of an earlier SELECT, which ran on another connection.
            if (
                isinstance(backend.found_rows, CarriedFoundRows)
                and backend.found_rows.of is not None
            ):
                await asyncio.wait([backend.found_rows.of.known])
            return
        if state.answered_at is not None:
            take_diagnostics(state.answered_at, state)
        left = state.left
        if left is not None:
            await asyncio.wait([left.known])
        if self._statement.shape.kind is not Kind.SELECT:
            raise AnswerHere(left)

    def forget_on(self, backend: Backend) -> None:
        """Do nothing: the text has no statement id of a server."""


def warnings_answer(
    statement: Statement, left: LastDiagnostics | None, capabilities: int
) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """Return columns and rows of SHOW WARNINGS or SHOW ERRORS, as payloads for such a client.

    Raises:
        Unsupported: the statement has another form.
    """
    asked = _ASKS_WARNINGS.fullmatch(statement.sql)
    if asked is None:
        raise Unsupported(
            f"{statement.shape.verb} of the statement before, which another client's connection or"
            " several shards have run; SHOW WARNINGS tells"
        )
    if left and left.columns:
        columns = left.columns
    else:
        columns = [column_definition(column, capabilities) for column in _WARNINGS]
    rows = left.rows if left else ()
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


def _numbers(left: LastDiagnostics | None) -> dict[str, bytes]:
    """Return the values by the function or variable that asks for them; 0 before the first statement."""
    rows = left.rows if left else ()
    errors = sum(parse_text_row(row)[0] == b"Error" for row in rows)
    return {
        "FOUND_ROWS": b"%d" % (left.found_rows if left else 0),
        "ROW_COUNT": b"%d" % (left.row_count if left else 0),
        "@@WARNING_COUNT": b"%d" % len(rows),
        "@@ERROR_COUNT": b"%d" % errors,
    }
