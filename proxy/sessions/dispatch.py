"""Which part of a session carries out which command."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from streamfrom.proxy.errors import UnknownCommand
from streamfrom.proxy.sessions.deprecated_commands import DeprecatedCommands
from streamfrom.proxy.sessions.query_attributes import QueryAttributes
from streamfrom.proxy.sql.bulk_commands import BulkCommands
from streamfrom.proxy.sql.fast_path import FastPath
from streamfrom.proxy.sql.prepared_commands import PreparedCommands
from streamfrom.proxy.sql.prepared_statements import PreparedStatements
from streamfrom.proxy.sql.statement_runner import StatementRunner
from streamfrom.proxy.wire import commands
from streamfrom.proxy.wire.commands import parse_command
from streamfrom.proxy.wire.constants import Command


if TYPE_CHECKING:
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sessions.process_list import ProcessList
    from streamfrom.proxy.sql.session_context import SessionContext


class Dispatch:
    """The commands of one logged-in session.

    Attributes:
        table: the statements that the client has prepared.
        statements, fast_path, attributes: what carries commands out, each named after its module.
    """

    def __init__(self, context: SessionContext, process_list: ProcessList) -> None:
        self._context = context
        self._process_list = process_list
        self.table = PreparedStatements(context.memory)
        self.statements = StatementRunner(context)
        self.fast_path = FastPath(context, self.table)
        self.attributes = QueryAttributes(context.state, self.table)
        self._prepared = PreparedCommands(context, self.statements, self.table)
        self._bulk = BulkCommands(context, self.statements, self._prepared, self.table)
        self._deprecated = DeprecatedCommands(context)

    async def dispatch(self, payload: bytes, reply: Reply) -> None:
        """Carry out a command and answer it.

        Raises:
            StreamfromError: what *reply* has still to send.
        """
        context, statements = self._context, self.statements
        match parse_command(payload):
            case commands.Query(sql):
                await statements.run(sql, reply)
            case Command.QUIT:
                context.link.close()
            case Command.PING:
                reply.ok()
            case commands.InitDb(name):
                await statements.use(context.state.settings.decoded(name), reply)
            case Command.RESET_CONNECTION:
                self.table.clear()
                statements.text_statements.clear()
                ending = context.executor.forget()
                context.state.reset()
                if ending:
                    # The client that gets OK may inform another one that its locks are free.
                    await asyncio.wait(ending)
                reply.ok()
            case commands.SetOption(multi_statements):
                context.state.multi_statements = multi_statements
                reply.end_of_rows()
            case commands.Refresh(refresh):
                await self._deprecated.refresh(refresh, reply)
            case Command.PROCESS_INFO:
                await self._deprecated.check_process_info()
                await statements.run(b"SHOW FULL PROCESSLIST", reply)
            case Command.STATISTICS:
                reply.packet(self._process_list.statistics())
            case Command.DEBUG:
                reply.end_of_rows()
            case commands.ProcessKill(connection_id):
                await self._process_list.kill(connection_id, query_only=False)
                reply.ok()
            case commands.FieldList():
                await self._deprecated.field_list(payload, reply)
            case commands.StmtPrepare(sql):
                await self._prepared.prepare(sql, reply)
            case commands.StmtExecute() as execute:
                await self._prepared.execute(execute, reply)
            case commands.StmtBulkExecute() as bulk:
                await self._bulk.execute(bulk, reply)
            case commands.StmtFetch() as fetch:
                await self._prepared.fetch(fetch, reply)
            case commands.StmtReset(statement_id):
                self._prepared.reset(statement_id)
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
                self._prepared.close(statement_id)
            case commands.StmtSendLongData() as command:
                self._prepared.send_long_data(command)
            case _:
                pass
