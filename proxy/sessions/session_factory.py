"""What a session consists of once somebody has logged in.

A login makes all of it, and COM_CHANGE_USER makes it anew: nothing of the user before is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamfrom.proxy.config.file import Role
from streamfrom.proxy.execution.executor import Executor
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.proxy.execution.transaction import Branches, PendingEffects
from streamfrom.proxy.sessions.deprecated_commands import DeprecatedCommands
from streamfrom.proxy.sessions.query_attributes import QueryAttributes
from streamfrom.proxy.sql.bulk_commands import BulkCommands
from streamfrom.proxy.sql.fast_path import FastPath
from streamfrom.proxy.sql.large_texts import LargeTexts
from streamfrom.proxy.sql.prepared_commands import PreparedCommands
from streamfrom.proxy.sql.prepared_statements import PreparedStatements
from streamfrom.proxy.sql.privileges import Privileges
from streamfrom.proxy.sql.session_context import SessionContext
from streamfrom.proxy.sql.statement_compiler import StatementCompiler
from streamfrom.proxy.sql.statement_runner import StatementRunner


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.config.file import User
    from streamfrom.proxy.memory import Memory
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.sessions.services import Services
    from streamfrom.proxy.sql.session_context import OtherSessions
    from streamfrom.proxy.sql.stream_statements import StreamStatements
    from streamfrom.proxy.sql.text_statements import TextStatements
    from streamfrom.proxy.wire.server_connection import ServerConnection
    from streamfrom.sqlparse_ext.writes.messages import Effect


@dataclass(frozen=True, slots=True)
class SessionParts:
    """The parts of one logged-in session, each named after its module."""

    state: SessionState
    executor: Executor
    compiler: StatementCompiler
    direct: FastPath
    statements: StatementRunner
    text_statements: TextStatements
    streams: StreamStatements
    prepared: PreparedCommands
    bulk: BulkCommands
    old: DeprecatedCommands
    table: PreparedStatements
    attributes: QueryAttributes


def make_session(
    services: Services,
    link: Link,
    wire: ServerConnection,
    user: User,
    connection_id: int,
    *,
    memory: Memory,
    others: OtherSessions,
) -> SessionParts:
    """Return the parts of a session of *user*, whose login *wire* has seen.

    memory: what the session keeps is counted there.
    """

    def publish(shard: ShardRuntime, table: str, effects: list[Effect]) -> None:
        services.registry.committed(shard.keyspace, shard.name, table, effects)

    login = wire.login
    assert login is not None
    state = SessionState(wire.capabilities, services.charset_settings(login.charset))
    executor = Executor(
        state,
        Branches(
            state,
            PendingEffects(publish),
            may_span_shards=services.config.transaction_mode != "single",
            # Who writes nothing has nothing to agree upon, and its account could not note it.
            coordinator=None if user.role is Role.READONLY else services.coordinator,
        ),
        failover_buffer_s=services.config.failover_buffer_s,
        spawn=services.spawn,
    )
    executor.on_file = wire.expect_infile
    guard = Privileges(user, link.peer, services.catalogs.accounts())
    catalog = services.catalogs.of(user)
    compiler = StatementCompiler(
        state,
        guard,
        catalog,
        services.registry,
        services.cache,
        services.clock,
        LargeTexts(services.readers),
    )
    context = SessionContext(
        connection_id,
        state,
        link,
        executor,
        guard,
        catalog,
        services.registry,
        compiler,
        services.config,
        others,
    )
    statements = StatementRunner(context)
    table = PreparedStatements(memory)
    prepared = PreparedCommands(context, statements, table)
    return SessionParts(
        state=state,
        executor=executor,
        compiler=compiler,
        direct=FastPath(context, table),
        statements=statements,
        text_statements=statements.text_statements,
        streams=statements.streams,
        prepared=prepared,
        bulk=BulkCommands(context, statements, prepared, table),
        old=DeprecatedCommands(context),
        table=table,
        attributes=QueryAttributes(state, table),
    )
