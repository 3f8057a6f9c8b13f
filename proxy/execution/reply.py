"""The proxy's own answers, numbered after the packets that the client has already received.

One `Reply` is the answer to one command. A command with several statements has several
answers in it: every one but the last announces another, and the sequence numbers run on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.fairness import Slices
from streamfrom.proxy.wire.binary_rows import BinaryRows
from streamfrom.proxy.wire.constants import Status
from streamfrom.proxy.wire.framing import frame, frames
from streamfrom.proxy.wire.pass_through import PassThrough
from streamfrom.proxy.wire.prepare_response import prepare_answer
from streamfrom.proxy.wire.resequencer import Resequencer
from streamfrom.proxy.wire.response_reader import DEPRECATE_EOF, AnswerKind
from streamfrom.proxy.wire.resultset import (
    column_count,
    column_definition,
    end_of_rows,
    error_packet,
    ok_packet,
    resultset_head,
    text_row,
)


if TYPE_CHECKING:
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.wire.resultset import ColumnDefinition
    from streamfrom.sqlparse_ext.errors import StreamfromError


_MORE_RESULTS: Final = int(Status.MORE_RESULTS_EXISTS)
# About half a millisecond of work.
_FRAMED_AT_ONCE: Final = 2000
INTERRUPTED: Final = 1317  # a server's answer to a statement that KILL QUERY ended


@dataclass(slots=True, eq=False)
class Reply:
    """The answer to one command."""

    link: Link  # the client's link
    _state: SessionState
    sequence: int  # the number of the next packet
    more: bool = False  # True while another statement's answer follows this one
    binary: bool = False  # the answer is one to COM_STMT_EXECUTE, whose rows are binary
    stopped: StreamfromError | None = None  # why the proxy has stopped the statement
    _binary_rows: BinaryRows | None = None

    @property
    def capabilities(self) -> int:
        """The client's flags, by which packets are written."""
        return self._state.capabilities

    @property
    def _status(self) -> int:
        return self._state.status | (_MORE_RESULTS if self.more else 0)

    def ok(
        self,
        *,
        affected_rows: int = 0,
        last_insert_id: int = 0,
        warnings: int = 0,
        info: bytes = b"",
        session_state: bytes = b"",
        status: int = 0,
    ) -> None:
        """Answer OK.

        status: flags in addition to those of the session's own state.
        """
        self.packet(
            ok_packet(
                affected_rows,
                last_insert_id,
                status=self._status | status,
                warnings=warnings,
                info=info,
                capabilities=self.capabilities,
                session_state=session_state,
            )
        )

    def updated(self, rows: int) -> None:
        """Answer OK as a server does to an UPDATE that has changed *rows* rows."""
        self.packet(_updated(rows, self._status, self.capabilities))

    def error(self, error: StreamfromError) -> None:
        """Answer with an error, which ends the command."""
        self.packet(error_packet(error, self.capabilities))

    def end_of_rows(self, *, status: int = 0, warnings: int = 0) -> None:
        """Answer with the packet that ends rows, which some commands take instead of OK.

        status: flags in addition to those of the session's own state.
        """
        self.packet(
            end_of_rows(self.capabilities, status=self._status | status, warnings=warnings)
        )

    def opened(self, columns: Sequence[bytes], *, warnings: int = 0) -> None:
        """Answer with columns only: the client fetches the rows."""
        status = self._status | int(Status.CURSOR_EXISTS)
        # No client gets two EOF packets here, of which the first would be the one behind the columns.
        end = end_of_rows(self.capabilities, status=status, warnings=warnings)
        framed, self.sequence = frames(
            [column_count(len(columns)), *columns, end], self.sequence
        )
        self.link.write(framed)

    def rows(
        self, columns: Sequence[ColumnDefinition], rows: Iterable[Sequence[bytes | None]]
    ) -> None:
        """Answer with a result set the proxy made."""
        capabilities = self.capabilities
        definitions = [column_definition(column, capabilities) for column in columns]
        encode = BinaryRows(definitions).encode if self.binary else text_row
        head, sequence = self._head(definitions)
        end = end_of_rows(capabilities, status=self._status)
        body, self.sequence = frames([*map(encode, rows), end], sequence)
        self.link.write(head + body)

    async def prepared(
        self,
        statement_id: int,
        parameters: Sequence[bytes],
        columns: Sequence[bytes],
        warnings: int = 0,
    ) -> None:
        """Answer COM_STMT_PREPARE; definitions are payloads, up to 65,535 of each kind."""
        payloads = prepare_answer(
            statement_id,
            parameters,
            columns,
            capabilities=self.capabilities,
            status=self._status,
            warnings=warnings,
        )
        slices = Slices()
        sequence = self.sequence
        parts = []
        for at in range(0, len(payloads), _FRAMED_AT_ONCE):
            await slices.breathe()
            part, sequence = frames(payloads[at : at + _FRAMED_AT_ONCE], sequence)
            parts.append(part)
        # At once: no error has a place in the middle of this answer.
        self.sequence = sequence
        self.link.write(b"".join(parts))

    def more_rows(self, rows: Sequence[bytes]) -> None:
        """Write more rows of the text protocol, as payloads, after a `head`."""
        if self._binary_rows is not None:
            rows = list(map(self._binary_rows.from_text, rows))
        framed, self.sequence = frames(rows, self.sequence)
        self.link.write(framed)

    def take_back(self) -> bool:
        """Return False: written packets cannot be taken back."""
        return False

    def head(self, columns: Sequence[bytes], *, within_s: float = 0) -> None:
        """Begin a result set: column definitions, as the server gave them, with the first row if that comes *within_s*."""
        framed, self.sequence = self._head(columns)
        self._binary_rows = BinaryRows(columns) if self.binary else None
        if within_s:
            self.link.write_ahead(framed, within_s)
        else:
            self.link.write(framed)

    async def returned(
        self, columns: Sequence[bytes], rows: Sequence[bytes], *, warnings: int = 0
    ) -> None:
        """Answer with rows that servers gave in the protocol of this command, as payloads."""
        framed, self.sequence = self._head(columns)
        self.link.write(framed)
        await self.many_rows(rows)
        self.end_of_rows(warnings=warnings)

    async def many_rows(self, rows: Sequence[bytes]) -> None:
        """Write rows in the protocol of this command, as payloads, and let other sessions run meanwhile."""
        slices = Slices()
        for at in range(0, len(rows), _FRAMED_AT_ONCE):
            await slices.breathe()
            framed, self.sequence = frames(rows[at : at + _FRAMED_AT_ONCE], self.sequence)
            self.link.write(framed)

    def _head(self, columns: Sequence[bytes]) -> tuple[bytes, int]:
        return resultset_head(
            columns,
            capabilities=self.capabilities,
            status=self._status,
            sequence=self.sequence,
        )

    def scanner(
        self,
        *,
        columns: bool = True,
        final: bool = True,
        answer: AnswerKind = AnswerKind.RESULT,
        call: bool = False,
        file: bool = False,
        warnings: int = 0,
    ) -> PassThrough | Resequencer:
        """Return a reader of a backend's answer that continues this reply.

        call: the statement is a CALL.
        file: the statement is a LOAD DATA LOCAL, whose server may ask for the file.
        warnings: the number of warnings of earlier answers that this one continues.
        """
        state = self._state
        capabilities = self.capabilities
        if (
            capabilities & DEPRECATE_EOF
            and columns
            and final
            and self.sequence == 1
            and not (self.more or call)
        ):
            return PassThrough(capabilities, answer, state.shown, allows_local_infile=file)
        return Resequencer(
            capabilities,
            answer,
            state.shown,
            next_sequence=self.sequence,
            columns=columns,
            final=final,
            more_results=self.more,
            columns_status=self._status,
            call=call,
            earlier_warnings=warnings,
            allows_local_infile=file,
        )

    def broke_off(self, scanner: PassThrough | Resequencer) -> None:
        """Continue the sequence numbers after an answer that will not end; an error may follow.

        If the answer broke off inside a packet, the client would read an error as the rest of that packet. The connection
        is then closed, as a server closes it.
        """
        self.sequence = scanner.next_sequence
        if scanner.is_mid_packet:
            self.link.close()

    def packet(self, payload: bytes) -> None:
        """Answer with a finished packet, such as a bare text."""
        self.link.write(frame(payload, self.sequence))
        self.sequence += 1


@lru_cache(maxsize=1024)
def _updated(rows: int, status: int, capabilities: int) -> bytes:
    info = b"Rows matched: %d  Changed: %d  Warnings: 0" % (rows, rows)
    return ok_packet(rows, status=status, info=info, capabilities=capabilities)
