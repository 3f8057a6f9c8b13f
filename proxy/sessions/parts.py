"""What a session consists of once somebody has logged in.

A login makes all of it, and COM_CHANGE_USER makes it anew: nothing of the user before is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamfrom.proxy.config.file import Role
from streamfrom.proxy.exchange.executor import Executor
from streamfrom.proxy.exchange.state import SessionState
from streamfrom.proxy.exchange.transaction import Branches, PendingEffects
from streamfrom.proxy.sessions.attributes import QueryAttributes
from streamfrom.proxy.sessions.old_commands import OldCommands
from streamfrom.proxy.sql.bulk import BulkCommands
from streamfrom.proxy.sql.direct import DirectPath
from streamfrom.proxy.sql.guard import Guard
from streamfrom.proxy.sql.large_texts import LargeTexts
from streamfrom.proxy.sql.naming import Naming
from streamfrom.proxy.sql.preparation import Preparation
from streamfrom.proxy.sql.prepared import PreparedTable
from streamfrom.proxy.sql.prepared_commands import PreparedCommands
from streamfrom.proxy.sql.routed import Routed
from streamfrom.proxy.sql.sequencing import Sequencing
from streamfrom.proxy.sql.statements import Kill, KillUser, Statements
from streamfrom.proxy.sql.streams import Streams
from streamfrom.proxy.sql.text_statements import TextStatements


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamfrom.proxy.answers.processlist import Process
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.config.file import User
    from streamfrom.proxy.memory import Memory
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.sessions.services import Services
    from streamfrom.proxy.wire.server_connection import ServerConnection
    from streamfrom.sqlparse_ext.writes.messages import Effect


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one logged-in session, each named after its module."""

    state: SessionState
    executor: Executor
    preparation: Preparation
    direct: DirectPath
    statements: Statements
    text_statements: TextStatements
    streams: Streams
    prepared: PreparedCommands
    bulk: BulkCommands
    old: OldCommands
    table: PreparedTable
    attributes: QueryAttributes


def assemble(
    services: Services,
    link: Link,
    wire: ServerConnection,
    user: User,
    connection_id: int,
    *,
    memory: Memory,
    kill: Kill,
    kill_user: KillUser,
    processes: Callable[[], list[Process]],
    holders: Callable[[ShardRuntime], Mapping[int, int]],
) -> Parts:
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
        link,
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
    guard = Guard(user, link.peer, services.catalogs.accounts())
    catalog = services.catalogs.of(user)
    preparation = Preparation(
        state,
        guard,
        catalog,
        services.registry,
        services.cache,
        services.clock,
        LargeTexts(services.readers),
    )
    routed = Routed(
        link=link,
        state=state,
        executor=executor,
        preparation=preparation,
        merge_memory_bytes=services.config.merge_memory_bytes,
    )
    streams = Streams(
        link=link, executor=executor, preparation=preparation, registry=services.registry
    )
    naming = Naming(executor, preparation)
    text_statements = TextStatements(preparation, executor)
    statements = Statements(
        connection_id=connection_id,
        socket=services.config.unix_socket,
        guard=guard,
        state=state,
        executor=executor,
        preparation=preparation,
        routed=routed,
        naming=naming,
        text_statements=text_statements,
        sequencing=Sequencing(guard, executor, preparation, catalog),
        streams=streams,
        catalog=catalog,
        registry=services.registry,
        kill=kill,
        kill_user=kill_user,
        processes=processes,
        tls=lambda: link.tls,
        holders=holders,
    )
    table = PreparedTable(memory)
    prepared = PreparedCommands(
        state=state,
        executor=executor,
        preparation=preparation,
        registry=services.registry,
        statements=statements,
        routed=routed,
        naming=naming,
        table=table,
        long_data_bytes_max=services.config.max_allowed_packet_bytes,
    )
    bulk = BulkCommands(
        state=state,
        executor=executor,
        preparation=preparation,
        registry=services.registry,
        statements=statements,
        routed=routed,
        table=table,
        prepared=prepared,
    )
    direct = DirectPath(preparation, executor, services.registry, link, table)
    old = OldCommands(guard, executor, preparation)
    return Parts(
        state=state,
        executor=executor,
        preparation=preparation,
        direct=direct,
        statements=statements,
        text_statements=text_statements,
        streams=streams,
        prepared=prepared,
        bulk=bulk,
        old=old,
        table=table,
        attributes=QueryAttributes(state, table),
    )
