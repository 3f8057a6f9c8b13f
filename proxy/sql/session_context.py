"""The objects that all parts of a logged-in session share, made once at login."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol


if TYPE_CHECKING:
    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.config.file import Server, User
    from streamfrom.proxy.execution.executor import Executor
    from streamfrom.proxy.execution.session_connections import SessionConnections
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.local_statements.show_processlist import Process
    from streamfrom.proxy.memory import Memory
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.sql.compile.catalog import Catalog
    from streamfrom.proxy.sql.compile.large_texts import LargeTexts
    from streamfrom.proxy.sql.compile.statement_compiler import StatementCompiler
    from streamfrom.proxy.sql.session_rights import SessionRights
    from streamfrom.proxy.status.status_source import Sight, StatusSource, Viewer
    from streamfrom.proxy.wire.server_connection import ServerConnection


class OtherSessions(Protocol):
    """The operations of one session on all sessions."""

    async def kill(self, connection_id: int, *, query_only: bool) -> None:
        """End another connection, or its statement. Raise NoSuchThread, NotOwner or MemberUnreachable."""

    def viewer(self, sight: Sight) -> Viewer:
        """Return the user as a reader of the schema `streamfrom`; *sight* is the part that the session's account sees."""

    async def fleet_processes(self) -> list[Process]:
        """Return the lines of SHOW PROCESSLIST."""

    def holders(self, shard: ShardRuntime) -> Mapping[int, int]:
        """Return the connection id of each session, by the id of its connection on *shard*."""


@dataclass(frozen=True, slots=True)
class SessionContext:
    """One logged-in session."""

    connection_id: int  # the id that the client knows, and that KILL names
    state: SessionState
    link: Link
    wire: ServerConnection
    memory: Memory  # counts the bytes that the session keeps
    connections: SessionConnections
    executor: Executor
    user: User
    host: str  # the host of the user's client
    catalog: Catalog
    registry: Registry  # the message tables
    rights: SessionRights
    compiler: StatementCompiler
    large_texts: LargeTexts
    config: Server  # limits and time-outs as of login
    others: OtherSessions
    status: StatusSource  # the rows of the tables of the schema `streamfrom`
