"""One execution of a prepared statement, for whichever backend connection it lands on.

The client's COM_STMT_EXECUTE names a statement of its session; each connection has its own id for the statement, or none
yet. So an execution is an object that makes the bytes for a connection, and first prepares the statement there if necessary.
The rest of the packet is the client's own. It always holds the parameter types, so no connection has to remember types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from streamfrom.proxy.errors import NoOpenCursor
from streamfrom.proxy.wire.binary_parameters import kinds_of
from streamfrom.proxy.wire.commands import (
    stmt_close,
    stmt_execute,
    stmt_fetch,
    stmt_send_long_data,
)


if TYPE_CHECKING:
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.statement_ids import StatementKey


# The size is below every server's max_allowed_packet.
_LONG_DATA_BYTES: Final = 512 << 10
_CURSOR_READ_ONLY: Final = 1


class Packet(Protocol):
    """A packet for a connection that is not known yet."""

    def packet_for(self, backend: Backend) -> bytes | None:
        """Return the bytes for *backend*; None when `prepare_on` must be called first."""

    async def prepare_on(self, backend: Backend) -> None:
        """Get *backend* ready. Raises BackendError and BackendLost."""

    def forget_on(self, backend: Backend) -> None:
        """Forget the statement id of *backend*, which the server no longer knows."""


@dataclass(slots=True, eq=False)
class Execution:
    """COM_STMT_EXECUTE without a cursor."""

    # The text of the statement, with the variables under which it is prepared.
    key: StatementKey
    _body: bytes  # the parameters with their types, as they go on the wire
    _count: int  # how many parameters
    # The data that COM_STMT_SEND_LONG_DATA sends first, by parameter.
    _long_data: Mapping[int, bytearray] | None = None
    # The statement stays prepared for other executions; False for a text that holds values or the current time.
    is_kept: bool = field(default=True, kw_only=True)

    def packet_for(self, backend: Backend) -> bytes | None:
        """Return the bytes for *backend*, None when the statement is not prepared there."""
        kinds = kinds_of(self._body, self._count) if backend.keeps_kinds else b""
        statement_id = backend.statements.get(self.key, kinds)
        if statement_id is None:
            return None
        if not self.is_kept:
            backend.statements.drop(self.key)
        packet = stmt_execute(statement_id, 0, self._body)
        return _long(statement_id, self._long_data) + packet if self._long_data else packet

    async def prepare_on(self, backend: Backend) -> None:
        """Prepare the statement on *backend*."""
        await backend.prepare(self.key)

    def forget_on(self, backend: Backend) -> None:
        """Forget the statement id, so that the statement is prepared again."""
        backend.statements.drop(self.key)


@dataclass(slots=True, eq=False)
class CursorExecution:
    """COM_STMT_EXECUTE that opens a cursor, on its own prepared statement."""

    _sql: bytes
    _body: bytes
    _long_data: Mapping[int, bytearray] | None = None
    # The connection that executed it last, which alone has the rows
    backend: Backend | None = None
    _statement_id: int = 0

    def packet_for(self, backend: Backend) -> bytes | None:
        """Return the bytes for the connection that was prepared, None for any other."""
        # A cursor lives on one connection; on another one the statement is prepared
        # first.
        if self.backend is not backend:
            return None
        packet = stmt_execute(self._statement_id, _CURSOR_READ_ONLY, self._body)
        return _long(self._statement_id, self._long_data or {}) + packet

    async def prepare_on(self, backend: Backend) -> None:
        """Prepare the statement on *backend*."""
        self._statement_id = (await backend.prepare_apart(self._sql)).statement_id
        self.backend = backend

    def forget_on(self, backend: Backend) -> None:
        """Forget the statement id, so that the statement is prepared again."""
        self.backend = None

    def close(self) -> None:
        """Close statement and cursor on the server."""
        backend, self.backend = self.backend, None
        if backend is not None and not backend.is_closed:
            backend.link.write(stmt_close(self._statement_id))

    def fetch(self, client_id: int, rows: int) -> Fetch:
        """Return the packet that fetches *rows* more rows. Raises NoOpenCursor if the cursor is closed."""
        if self.backend is None or self.backend.is_closed:
            raise NoOpenCursor(client_id)
        return Fetch(self.backend, client_id, stmt_fetch(self._statement_id, rows))


@dataclass(frozen=True, slots=True)
class Fetch:
    """COM_STMT_FETCH, which only one connection can answer."""

    _backend: Backend
    _client_id: int
    _packet: bytes

    def packet_for(self, backend: Backend) -> bytes | None:
        """Return the bytes, None for a connection that does not have the cursor."""
        return self._packet if backend is self._backend else None

    async def prepare_on(self, backend: Backend) -> None:
        """Refuse: no other connection has the rows."""
        raise NoOpenCursor(self._client_id)

    def forget_on(self, backend: Backend) -> None:
        """Note that the server has closed the cursor."""


def _long(statement_id: int, long_data: Mapping[int, bytearray]) -> bytes:
    packets = []
    for parameter, data in long_data.items():
        # An empty piece is long data, too: an empty value.
        for start in range(0, max(len(data), 1), _LONG_DATA_BYTES):
            piece = bytes(data[start : start + _LONG_DATA_BYTES])
            packets.append(stmt_send_long_data(statement_id, parameter, piece))
    return b"".join(packets)
