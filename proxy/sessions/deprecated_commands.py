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


async def refresh(context: SessionContext, payload: bytes, reply: Reply) -> None:
    """Answer COM_REFRESH, whose flags say what to FLUSH. Raises whatever stops a FLUSH."""
    flags = payload[1] if len(payload) > 1 else 0
    statement = context.compiler.target.parse(
        b"FLUSH PRIVILEGES" if flags & _REFRESH_GRANT else b"FLUSH TABLES"
    )
    context.compiler.check(statement)
    shape = statement.shape
    view = context.compiler.target.here()
    check_target(view, shape)
    view.planner.plan(shape)
    shard, packet = view.runtimes[0], frame(payload, 0)
    attempt = Attempt(shard, context.compiler.target.database, packet, shape, reply)
    try:
        await context.executor.relay(attempt)
    finally:
        if flags & _REFRESH_GRANT:
            context.rights.desk.changed()


async def check_process_info(context: SessionContext) -> None:
    """Raise what the server says of COM_PROCESS_INFO, which newer MySQL does not know."""
    shard = context.compiler.target.here().runtimes[0]
    if not shard.is_mariadb:
        shape = context.compiler.target.parse(b"SHOW PROCESSLIST").shape
        await context.executor.ask(shard, None, frame(b"\x0a", 0), shape)


async def field_list(context: SessionContext, payload: bytes, reply: Reply) -> None:
    """Answer COM_FIELD_LIST: the columns of a table, from the first shard.

    Raises:
        NoDatabaseSelected: there is none for the table to be in.
    """
    table = PacketReader(payload, pos=1).until_nul().replace(b"`", b"``")
    view = context.compiler.target.view
    if view is None:
        raise NoDatabaseSelected
    statement = context.compiler.target.parse(b"SHOW COLUMNS FROM `%b`" % table)
    context.compiler.check(statement)
    shard, packet = view.runtimes[0], frame(payload, 0)
    attempt = Attempt(shard, view.database, packet, statement.shape, reply)
    await context.executor.relay(attempt, answer=AnswerKind.ROWS)
