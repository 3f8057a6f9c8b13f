"""Which part of a session carries out which command."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import (
    NoDatabaseSelected,
    ProxyError,
    UnknownCommand,
)
from streamfrom.proxy.execution.attempt import Attempt
from streamfrom.proxy.routing.vschema_tables import NotInVschema
from streamfrom.proxy.sql.fast_path import FastPath
from streamfrom.proxy.sql.prepared_commands import PreparedCommands
from streamfrom.proxy.sql.prepared_statements import PreparedStatements
from streamfrom.proxy.sql.statement_runner import StatementRunner
from streamfrom.proxy.wire.codec import PacketReader
from streamfrom.proxy.wire.commands import read_execute
from streamfrom.proxy.wire.constants import Command
from streamfrom.proxy.wire.framing import frame
from streamfrom.proxy.wire.response_reader import AnswerKind
from streamfrom.sqlparse_ext.text.identifiers import quoted


if TYPE_CHECKING:
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.sessions.process_list import ProcessList
    from streamfrom.proxy.sql.session_context import SessionContext


_NO_SUCH_TABLE: Final = 1146


async def field_list(context: SessionContext, payload: bytes, reply: Reply) -> None:
    """Answer COM_FIELD_LIST: the columns of a table, from any shard. Raises NoDatabaseSelected."""
    table = PacketReader(payload, pos=1).until_nul().replace(b"`", b"``")
    view = context.compiler.target.view
    if view is None:
        raise NoDatabaseSelected
    statement = context.compiler.target.parse(b"SHOW COLUMNS FROM `%b`" % table)
    context.compiler.check(statement)
    shards, packet = view.runtimes, frame(payload, 0)
    attempt = Attempt(shards[0], view.database, packet, statement.shape, reply, any_of=shards)
    await context.executor.relay(attempt, answer=AnswerKind.ROWS)


async def check_table(context: SessionContext, unknown: NotInVschema) -> None:
    """Raise the shard's error if the table is not there either: a misspelt name is more likely than a missing vschema entry."""
    view = context.catalog.view(unknown.keyspace)
    probe = b"SELECT 1 FROM " + quoted(unknown.table)
    try:
        await context.executor.prepare_on(view.runtimes, view.database, probe)
    except ProxyError as error:
        if error.wire_code()[0] == _NO_SUCH_TABLE:
            raise


class Dispatch:
    """The commands of one logged-in session."""

    def __init__(self, context: SessionContext, process_list: ProcessList) -> None:
        self._context = context
        self._process_list = process_list
        # The statements that the client has prepared.
        self.table = PreparedStatements(context.memory)
        # The parts that carry commands out, each named after its module.
        self.statements = StatementRunner(context)
        self.fast_path = FastPath(context, self.table, self.statements.transactions)
        self._prepared = PreparedCommands(context, self.statements, self.table)

    def forget_statements(self) -> None:
        """Remove all that is prepared."""
        self.table.clear()
        self.statements.text_statements.clear()

    async def dispatch(self, payload: bytes, reply: Reply) -> None:
        """Carry out a command and answer it. Raises StreamfromError, which *reply* has still to send."""
        try:
            await self._carry_out(payload, reply)
        except NotInVschema as error:
            await check_table(self._context, error)
            raise

    async def _carry_out(self, payload: bytes, reply: Reply) -> None:
        context, statements = self._context, self.statements
        arguments = PacketReader(payload, pos=1)
        match payload[0]:
            case Command.QUERY:
                await statements.run(arguments.rest(), reply)
            case Command.QUIT:
                context.link.close()
            case Command.PING:
                reply.ok()
            case Command.INIT_DB:
                await statements.use(context.state.settings.decoded(arguments.rest()), reply)
            case Command.RESET_CONNECTION:
                # A fresh session without a new login.
                self.forget_statements()
                ending = context.executor.forget()
                context.state.reset()
                if ending:
                    # The client that gets OK may inform another one that its locks are free.
                    await asyncio.wait(ending)
                reply.ok()
            case Command.SET_OPTION if (option := arguments.uint(2)) <= 1:
                context.state.multi_statements = option == 0
                reply.end_of_rows()
            case Command.STATISTICS:
                # Answered by one packet of bare text.
                reply.packet(self._process_list.statistics())
            case Command.PROCESS_KILL:
                await self._process_list.kill(arguments.uint(4), query_only=False)
                reply.ok()
            case Command.FIELD_LIST:
                await field_list(context, payload, reply)
            case Command.STMT_PREPARE:
                await self._prepared.prepare(arguments.rest(), reply)
            case Command.STMT_EXECUTE:
                await self._prepared.execute(read_execute(payload), reply)
            case Command.STMT_FETCH:
                await self._prepared.fetch(arguments.uint(4), arguments.uint(4), reply)
            case Command.STMT_RESET:
                self._prepared.reset(arguments.uint(4))
                reply.ok()
            case _:
                raise UnknownCommand

    def run_unanswered(self, payload: bytes) -> None:
        """Carry out COM_STMT_CLOSE or COM_STMT_SEND_LONG_DATA, which have no answer, not even an error. Raises WireError."""
        arguments = PacketReader(payload, pos=1)
        statement_id = arguments.uint(4)
        if payload[0] == Command.STMT_CLOSE:
            self._prepared.close(statement_id)
        else:
            parameter, data = arguments.uint(2), arguments.rest_view()
            self._prepared.send_long_data(statement_id, parameter, data)
