"""What the parts of one logged-in session have in common, made once at its login."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol


if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamfrom.engine.messaging.registry import Registry
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.config.file import Server
    from streamfrom.proxy.execution.executor import Executor
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.local_statements.show_processlist import Process
    from streamfrom.proxy.memory import Memory
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.sql.catalog import Catalog
    from streamfrom.proxy.sql.privileges import Privileges
    from streamfrom.proxy.sql.statement_compiler import StatementCompiler
    from streamfrom.proxy.status.status_source import StatusSource, Viewer
    from streamfrom.proxy.wire.server_connection import ServerConnection


class OtherSessions(Protocol):
    """What one session may ask of all."""

    async def kill(self, connection_id: int, *, query_only: bool) -> None:
        """End another connection, or what it runs. Raise NoSuchThread, NotOwner or MemberUnreachable."""

    async def kill_user(self, name: str, *, query_only: bool) -> int:
        """End the connections of a user, or what they run; return how many.

        Raises:
            KillDenied, MemberUnreachable: it is another user, or a member of the fleet did not answer.
        """

    def viewer(self) -> Viewer:
        """Return the user as a reader of the schema `streamfrom`."""

    async def fleet_processes(self) -> list[Process]:
        """Return the lines of SHOW PROCESSLIST."""

    def holders(self, shard: ShardRuntime) -> Mapping[int, int]:
        """Return the connection id of each session, by the id that *shard* knows it by."""


@dataclass(frozen=True, slots=True)
class SessionContext:
    """One logged-in session.

    Attributes:
        connection_id: what the client was told, and what KILL names.
        state: the session apart from its sockets.
        link: the client's socket.
        wire: the protocol on it.
        memory: counts what the session keeps.
        executor: the connections to shards, and the transaction on them.
        privileges: what the user may do.
        catalog: the keyspaces that the user's role sees.
        registry: the message tables.
        compiler: what a statement becomes before it is sent.
        config: limits and time-outs as they were at the login.
        others: the other sessions.
        status: what the tables of the schema `streamfrom` are made of.
    """

    connection_id: int
    state: SessionState
    link: Link
    wire: ServerConnection
    memory: Memory
    executor: Executor
    privileges: Privileges
    catalog: Catalog
    registry: Registry
    compiler: StatementCompiler
    config: Server
    others: OtherSessions
    status: StatusSource
