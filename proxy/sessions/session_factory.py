"""What a session consists of once a client has logged in.

A login makes all of it, and COM_CHANGE_USER makes it again: nothing of the user before is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.proxy.backends.account import account_of
from streamfrom.proxy.errors import RoundedId
from streamfrom.proxy.execution.executor import Executor
from streamfrom.proxy.execution.session_connections import SessionConnections
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.proxy.execution.transaction import Branches, PendingEffects
from streamfrom.proxy.sql.compile.large_texts import LargeTexts
from streamfrom.proxy.sql.compile.statement_compiler import StatementCompiler
from streamfrom.proxy.sql.session_context import OtherSessions, SessionContext
from streamfrom.proxy.sql.session_rights import SessionRights
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.config.file import User
    from streamfrom.proxy.memory import Memory
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.sessions.services import Services
    from streamfrom.proxy.wire.server_connection import ServerConnection
    from streamfrom.sqlparse_ext.writes.hidden_writes import HiddenWrites


def make_context(
    services: Services,
    link: Link,
    wire: ServerConnection,
    user: User,
    connection_id: int,
    *,
    memory: Memory,
    others: OtherSessions,
) -> SessionContext:
    """Return what a session of *user* begins with, whose login *wire* has seen.

    memory: what the session keeps is counted there.
    """

    def publish(shard: ShardRuntime, table: str, effects: list[Effect]) -> None:
        services.registry.committed(shard.keyspace, shard.name, table, effects)

    def hidden(shard: ShardRuntime) -> HiddenWrites:
        return services.registry.hidden_writes(shard.keyspace)

    def fault_of(shard: ShardRuntime, table: str, effect: Effect) -> RoundedId | None:
        if effect.kind is not EffectKind.ACK:
            return None
        given = [value for value in effect.ids or () if isinstance(value, int)]
        found = services.registry.here.find_rounded(shard.keyspace, table, given)
        return None if found is None else RoundedId(*found)

    login = wire.login
    assert login is not None
    state = SessionState(
        wire.capabilities, services.charset_settings(login.charset), account_of(user)
    )
    connections = SessionConnections(
        state,
        Branches(
            state,
            PendingEffects(publish, hidden),
            may_span_shards=services.config.transaction_mode != "single",
            coordinator=services.coordinator,
        ),
        failover_buffer_s=services.config.failover_buffer_s,
        spawn=services.spawn,
    )
    executor = Executor(state, connections)
    executor.on_file = wire.expect_infile
    executor.fault_of = fault_of
    catalog = services.catalog
    compiler = StatementCompiler(
        state, catalog, services.registry, services.cache, services.clock
    )
    return SessionContext(
        connection_id,
        state,
        link,
        wire,
        memory,
        connections,
        executor,
        user,
        link.peer,
        catalog,
        services.registry,
        SessionRights(
            services.rights, state, connections, services.registry, compiler.uncounted
        ),
        compiler,
        LargeTexts(services.readers),
        services.config,
        others,
        services.status,
    )
