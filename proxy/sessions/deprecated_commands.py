"""Commands that are older than the statements which do the same: COM_FIELD_LIST, COM_REFRESH.

A server answers them in a way of its own, so it is sent the command itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import NoDatabaseSelected
from streamfrom.proxy.execution.attempt import Attempt
from streamfrom.proxy.sql.compile.session_target import check_target
from streamfrom.proxy.wire.codec import PacketReader
from streamfrom.proxy.wire.framing import frame
from streamfrom.proxy.wire.response import AnswerKind


if TYPE_CHECKING:
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sql.session_context import SessionContext


_REFRESH_GRANT: Final = 1


class DeprecatedCommands:
    """The old commands of one session."""

    __slots__ = ("_compiler", "_executor", "_rights", "_target")

    def __init__(self, context: SessionContext) -> None:
        self._executor = context.executor
        self._compiler = context.compiler
        self._target = context.compiler.target
        self._rights = context.rights

    async def refresh(self, payload: bytes, reply: Reply) -> None:
        """Answer COM_REFRESH, whose flags say what to FLUSH. Raises whatever stops a FLUSH."""
        flags = payload[1] if len(payload) > 1 else 0
        statement = self._target.parse(
            b"FLUSH PRIVILEGES" if flags & _REFRESH_GRANT else b"FLUSH TABLES"
        )
        self._compiler.check(statement)
        shape = statement.shape
        view = self._target.here()
        check_target(view, shape)
        view.planner.plan(shape)
        shard, packet = view.runtimes[0], frame(payload, 0)
        attempt = Attempt(shard, self._target.database, packet, shape, reply)
        try:
            await self._executor.relay(attempt)
        finally:
            if flags & _REFRESH_GRANT:
                self._rights.changed()

    async def check_process_info(self) -> None:
        """Raise what the server says of COM_PROCESS_INFO, which newer MySQL does not know."""
        shard = self._target.here().runtimes[0]
        if not shard.is_mariadb:
            shape = self._target.parse(b"SHOW PROCESSLIST").shape
            await self._executor.ask(shard, None, frame(b"\x0a", 0), shape)

    async def field_list(self, payload: bytes, reply: Reply) -> None:
        """Answer COM_FIELD_LIST: the columns of a table, from the first shard.

        Raises:
            NoDatabaseSelected: there is none for the table to be in.
        """
        table = PacketReader(payload, pos=1).until_nul().replace(b"`", b"``")
        view = self._target.view
        if view is None:
            raise NoDatabaseSelected
        statement = self._target.parse(b"SHOW COLUMNS FROM `%b`" % table)
        self._compiler.check(statement)
        shard, packet = view.runtimes[0], frame(payload, 0)
        attempt = Attempt(shard, view.database, packet, statement.shape, reply)
        await self._executor.relay(attempt, answer=AnswerKind.ROWS)
