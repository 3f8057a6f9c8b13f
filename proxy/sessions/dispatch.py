"""Which part of a session carries out which command."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from streamfrom.proxy.errors import UnknownCommand
from streamfrom.proxy.wire import commands
from streamfrom.proxy.wire.commands import parse_command
from streamfrom.proxy.wire.constants import Command


if TYPE_CHECKING:
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.sessions.peers import Peers
    from streamfrom.proxy.sessions.session_factory import SessionParts


class Dispatch:
    """The commands of one logged-in session."""

    __slots__ = ("_link", "_parts", "_peers")

    def __init__(self, parts: SessionParts, link: Link, peers: Peers) -> None:
        self._parts = parts
        self._link = link
        self._peers = peers

    async def dispatch(self, payload: bytes, reply: Reply) -> None:
        """Carry out a command and answer it.

        Raises:
            StreamfromError: what *reply* has still to be told.
        """
        parts = self._parts
        match parse_command(payload):
            case commands.Query(sql):
                await parts.statements.run(sql, reply)
            case Command.QUIT:
                self._link.close()
            case Command.PING:
                reply.ok()
            case commands.InitDb(name):
                await parts.statements.use(parts.state.settings.decoded(name), reply)
            case Command.RESET_CONNECTION:
                parts.table.clear()
                parts.text_statements.clear()
                ending = parts.executor.forget()
                parts.state.reset()
                if ending:
                    # The client that hears OK may tell another one that its locks are free.
                    await asyncio.wait(ending)
                reply.ok()
            case commands.SetOption(multi_statements):
                parts.state.multi_statements = multi_statements
                reply.end_of_rows()
            case commands.Refresh(refresh):
                await parts.old.refresh(refresh, reply)
            case Command.PROCESS_INFO:
                await parts.old.check_process_info()
                await parts.statements.run(b"SHOW FULL PROCESSLIST", reply)
            case Command.STATISTICS:
                reply.text(self._peers.statistics())
            case Command.DEBUG:
                reply.end_of_rows()
            case commands.ProcessKill(connection_id):
                await self._peers.kill(connection_id, query_only=False)
                reply.ok()
            case commands.FieldList():
                await parts.old.field_list(payload, reply)
            case commands.StmtPrepare(sql):
                await parts.prepared.prepare(sql, reply)
            case commands.StmtExecute() as execute:
                await parts.prepared.execute(execute, reply)
            case commands.StmtBulkExecute() as bulk:
                await parts.bulk.execute(bulk, reply)
            case commands.StmtFetch() as fetch:
                await parts.prepared.fetch(fetch, reply)
            case commands.StmtReset(statement_id):
                parts.prepared.reset(statement_id)
                reply.ok()
            case _:
                raise UnknownCommand

    def run_unanswered(self, payload: bytes) -> None:
        """Carry out a command that has no answer, not even an error.

        Raises:
            WireError: it is malformed.
        """
        match parse_command(payload):
            case commands.StmtClose(statement_id):
                self._parts.prepared.close(statement_id)
            case commands.StmtSendLongData() as command:
                self._parts.prepared.send_long_data(command)
            case _:
                pass
