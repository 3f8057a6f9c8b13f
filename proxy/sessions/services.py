"""The parts that all sessions share, handed to each as one object."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from streamfrom.proxy.config.file import Role, Server, User
from streamfrom.proxy.log import SparingLog


if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from streamfrom.engine.clock import Clock
    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.proxy.addresses import AddressCounts
    from streamfrom.proxy.backends.session_variables import Settings
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.local_statements.show_processlist import Process
    from streamfrom.proxy.memory import Memory
    from streamfrom.proxy.rights.desk import RightsDesk
    from streamfrom.proxy.sessions.login_backoff import LoginBackoff
    from streamfrom.proxy.sessions.login_work import LoginWork
    from streamfrom.proxy.sql.compile.catalog import Catalog
    from streamfrom.proxy.status.status_source import StatusSource
    from streamfrom.proxy.tls import ServerTls
    from streamfrom.proxy.twophase.coordinator import Coordinator
    from streamfrom.proxy.wire.login.auth import Authenticator
    from streamfrom.sqlparse_ext.cache import StatementCache
    from streamfrom.sqlparse_ext.errors import StreamfromError


class Work(Protocol):
    """The work of a user on a connection: `command_loop.CommandLoop`."""

    @property
    def is_committing(self) -> bool:
        """True while the current statement may commit, so that only its own answer is true."""

    def process(self) -> Process:
        """Return the line in SHOW PROCESSLIST."""

    def thread_on(self, shard: ShardRuntime) -> int | None:
        """Return the thread id on *shard*, None if it holds no connection there."""

    def is_on(self, servers: Collection[ShardRuntime]) -> bool:
        """Return whether its statements go to one of *servers* unless they name another."""

    def interrupt(self, error: StreamfromError) -> list[asyncio.Task[None]]:
        """Stop the current statement; return the tasks that kill it on its servers."""

    def shut_down(self, error: StreamfromError) -> None:
        """End with *error* once it is idle and has no transaction open."""

    def stop_work(self, error: StreamfromError) -> None:
        """End with *error* after the current statement; stop that if nothing is lost."""

    def keep_limits(self, now_s: float, limits: Server) -> None:
        """Stop a statement that takes too long; disconnect a client that is silent for too long."""


class Peer(Protocol):
    """A session as KILL, SHOW PROCESSLIST, the time limits and the shutdown see it."""

    user: User | None  # the logged-in user, None before
    closed: asyncio.Event

    @property
    def work(self) -> Work:
        """The work of its user; there is none before the login."""

    def cut_off(self, error: StreamfromError) -> None:
        """Disconnect now; send *error* first if the client waits for an answer."""

    def end(self) -> None:
        """End the session now."""


def _port_log() -> SparingLog:
    return SparingLog(structlog.get_logger().bind(port="mysql"))


class OtherMembers(Protocol):
    """The sessions of the other members of the fleet. Each method raises MemberUnreachable."""

    async def kill(self, asker: Asker, connection_id: int, *, query_only: bool) -> None:
        """End a connection, or its statement. Raise NoSuchThread or NotOwner."""

    async def processes(self, asker: Asker) -> list[Process]:
        """Return their lines of SHOW PROCESSLIST; a member that does not answer has a line with that fact."""


@dataclass(frozen=True, slots=True)
class Asker:
    """The user who asks about sessions."""

    user: str  # the name
    is_admin: bool  # its role is admin

    @classmethod
    def of(cls, user: User) -> Asker:
        """Return *user* as an asker."""
        return cls(user.name, user.role is Role.ADMIN)

    def may_see(self, user: User | None) -> bool:
        """Return whether a session of *user* may be listed and ended; None: it has not logged in."""
        # By name: the user may have been read again since one of them logged in.
        return user is not None and (self.is_admin or user.name == self.user)


@dataclass(slots=True)
class Tally:
    """Counters since the start of the proxy."""

    # Commands of clients, without those that MySQL's `Questions` leaves out: COM_PING, COM_STATISTICS, COM_STMT_PREPARE,
    # COM_STMT_RESET and COM_STMT_CLOSE.
    questions: int = 0


@dataclass(slots=True)
class Services:
    """The shared parts of one running proxy.

    `config`, `users`, `has_admin`, `loopback_only` and `tls` are replaced together, with the authenticator's accounts,
    when the configuration is reloaded; everything else stays.
    """

    config: Server  # limits and time-outs
    users: Mapping[str, User]  # by name; empty when only the loopback root may enter
    has_admin: bool  # one of the users is an admin; one connection is kept for admins
    loopback_only: bool  # refuse every client that is not on this machine
    authenticator: Authenticator  # decides logins
    tls: ServerTls | None  # the TLS context for clients, None when TLS is not offered
    server_version: Callable[[], str]  # returns the version of the greeting
    collation_id: Callable[[], int]  # returns the collation of the greeting
    # Returns True if every server can report more about a column than its type, as MariaDB does.
    extends_metadata: Callable[[], bool]
    catalog: Catalog  # the keyspaces
    registry: Registry  # the message tables
    rights: RightsDesk  # the rights of users' own accounts
    cache: StatementCache  # the parsed statements
    clock: Clock  # returns the time
    # From the collation id of a login to the session's first variables.
    charset_settings: Callable[[int], Settings]
    sessions: dict[int, Peer]  # all sessions, by connection id
    is_stopping: Callable[[], bool]  # returns True once no client may log in any more
    uptime_s: Callable[[], float]  # returns how long the proxy has been running
    tally: Tally  # the counters of SHOW STATUS
    status: StatusSource  # the source of the tables of the schema `streamfrom`
    nonce: Callable[[], bytes]  # returns 20 fresh random bytes for a login
    backoff: LoginBackoff  # how long logins wait
    # Returns the memory budget that all connections of the named user share.
    memory_of: Callable[[str], Memory]
    work: LoginWork  # runs the costly parts of logins
    connected: AddressCounts  # the connections of each address
    strangers: AddressCounts  # those of them that have not logged in
    # Commits in two phases; None without `transaction_mode = "twopc"`.
    coordinator: Coordinator | None
    readers: ThreadPoolExecutor  # the threads that read large texts
    # Runs a coroutine in the background and logs its failure.
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    # The sessions of the other members of the fleet; None without a fleet.
    members: OtherMembers | None = None
    # Logs events that anybody can cause without a login, at a limited rate.
    turned_away: SparingLog = field(default_factory=_port_log)
