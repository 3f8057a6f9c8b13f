"""The query attributes of one session: taken out of its commands, kept while they run.

A client that may send attributes writes how many there are before every statement. Nothing
behind this module sees that: it gets the command as a client without attributes would have sent
it. What there was is put in again where a server is sent something because of the command, if it
knows attributes (`proxy.backends.backend`); a server that does not, MariaDB, gets the statement
alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.proxy.errors import MalformedPacket, WireError
from streamfrom.proxy.wire.attribute_encoding import from_execute, from_query


if TYPE_CHECKING:
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.sql.prepared_statements import PreparedStatements


class QueryAttributes:
    """What came with the commands of one session, in its `SessionState.attributes`."""

    __slots__ = ("_state", "_table")

    def __init__(self, state: SessionState, table: PreparedStatements) -> None:
        self._state = state
        self._table = table

    def taken_from(self, payload: bytes) -> bytes:
        """Return a command without its attributes, which are the session's from now on.

        Raises:
            MalformedPacket: they make no sense. A server goes on with the next command.
        """
        state = self._state
        state.attributes = ()
        try:
            if payload[:1] == b"\x03":
                payload, state.attributes = from_query(payload)
            elif payload[:1] == b"\x17":
                prepared = self._table.get(int.from_bytes(payload[1:5], "little"))
                if prepared is not None:
                    found = from_execute(payload, prepared.count, prepared.long_data)
                    payload, state.attributes = found
        except WireError:
            raise MalformedPacket from None
        return payload
