"""The answer to COM_STMT_PREPARE: read from backends, written for clients.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_prepare.html

    0x00  statement id (4)  columns (2)  parameters (2)  0x00  warnings (2)
    a definition for each parameter, then one for each column

Only clients without DEPRECATE_EOF get an EOF behind each of the two lists, if it is not empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.codec import PacketReader
from streamfrom.proxy.wire.constants import (
    ERR_HEADER,
    FRAME_BYTES_MAX,
    OK_HEADER,
    Capability,
)
from streamfrom.proxy.wire.framing import Framer
from streamfrom.proxy.wire.resultset import ColumnDefinition, Err, eof_packet, parse_err


_HEAD: Final = Struct("<BIHHxH")


@dataclass(slots=True, eq=False)
class PrepareReader:
    """Reads one answer of a backend, which has DEPRECATE_EOF.

    ``done``: the answer is complete; ``rest`` holds the bytes that follow it.
    ``statement_id``, ``parameters``, ``columns`` (definitions as payloads), ``warnings``: the
    fields of COM_STMT_PREPARE_OK; ``error``: the ERR in its place, else None.
    """

    done: bool = False
    rest: bytes = b""
    statement_id: int = 0
    warnings: int = 0
    parameters: list[bytes] = field(default_factory=list)
    columns: list[bytes] = field(default_factory=list)
    error: Err | None = None
    _framer: Framer = field(
        default_factory=lambda: Framer(FRAME_BYTES_MAX - 1, is_numbered=False)
    )
    _started: bool = False
    _parameters_left: int = 0
    _columns_left: int = 0

    def feed(self, chunk: bytes) -> None:
        """Accept bytes in pieces of any size. WireError if they are no such answer."""
        if self.done:
            raise WireError("the server speaks out of turn")
        self._framer.feed(chunk)
        while not self.done and (payload := self._framer.next_packet()) is not None:
            if not payload:
                raise WireError("a packet of this size has no place here")
            self.done = self._packet(payload)
        if self.done:
            self.rest = self._framer.take_rest()

    def _packet(self, payload: bytes) -> bool:
        """Process one packet; True if it was the last."""
        if not self._started:
            self._head(payload)
        elif self._parameters_left:
            self._parameters_left -= 1
            self.parameters.append(payload)
        else:
            self._columns_left -= 1
            self.columns.append(payload)
        return not (self._parameters_left or self._columns_left)

    def _head(self, payload: bytes) -> None:
        self._started = True
        if payload[0] == ERR_HEADER:
            self.error = parse_err(payload)
            return
        header, self.statement_id, *counts = PacketReader(payload).unpack(_HEAD)
        if header != OK_HEADER:
            raise WireError("unexpected answer to COM_STMT_PREPARE")
        self._columns_left, self._parameters_left, self.warnings = counts


def prepare_answer(
    statement_id: int,
    parameters: Sequence[bytes],
    columns: Sequence[bytes],
    *,
    capabilities: int,
    status: int,
    warnings: int = 0,
) -> list[bytes]:
    """Return the whole answer, as payloads.

    *parameters* and *columns* are definitions as payloads.
    """
    counts = len(columns), len(parameters), min(warnings, 0xFFFF)
    payloads = [_HEAD.pack(OK_HEADER, statement_id, *counts)]
    for definitions in (parameters, columns):
        payloads += definitions
        if definitions and not capabilities & Capability.DEPRECATE_EOF:
            payloads.append(eof_packet(status, warnings))
    return payloads


# The definition that servers give for every parameter: only an execution shows the type.
PARAMETER: Final = ColumnDefinition("?", length=0)
