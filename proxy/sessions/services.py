"""What all sessions share, handed to each as one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol


if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Mapping
    from concurrent.futures import ThreadPoolExecutor
    from typing import Any

    from streamfrom.engine.messaging.clock import Clock
    from streamfrom.engine.messaging.registry import Registry
    from streamfrom.proxy.backends.settings import Settings
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.config.file import Server, User
    from streamfrom.proxy.local_statements.show_processlist import Process
    from streamfrom.proxy.memory import Memory
    from streamfrom.proxy.sessions.addresses import Addresses
    from streamfrom.proxy.sessions.login_backoff import LoginBackoff
    from streamfrom.proxy.sessions.login_work import LoginWork
    from streamfrom.proxy.sql.catalog import Catalogs
    from streamfrom.proxy.tls import ServerTls
    from streamfrom.proxy.twophase.coordinator import Coordinator
    from streamfrom.proxy.wire.auth import Authenticator
    from streamfrom.sqlparse_ext.cache import StatementCache
    from streamfrom.sqlparse_ext.errors import StreamfromError


class Peer(Protocol):
    """A session, as others see it: KILL, and the shutdown."""

    user: User | None
    closed: asyncio.Event

    def process(self) -> Process | None:
        """Return its line in SHOW PROCESSLIST, None before it has logged in."""

    def thread_on(self, shard: ShardRuntime) -> int | None:
        """Return the id that *shard* knows it by, None where it holds no connection."""

    def interrupt(self, error: StreamfromError) -> list[asyncio.Task[None]]:
        """Stop what it is running; return what tells its servers."""

    def shut_down(self, error: StreamfromError) -> None:
        """End it with *error* once it has nothing to do and no transaction is open."""

    def stop_work(self, error: StreamfromError) -> None:
        """End it with *error* once what runs is answered; stop that if nothing is lost so."""

    @property
    def is_committing(self) -> bool:
        """True while what runs may commit, so that only its own answer tells what became of it."""

    def cut_off(self, error: StreamfromError) -> None:
        """Disconnect it now; the client is told *error* if it waits for an answer."""

    def end(self) -> None:
        """End it now."""

    def busy_s(self, now_s: float) -> float:
        """Return for how long a statement has been running, 0 for none and for a STREAM."""

    def time_out(self, now_s: float) -> None:
        """Stop the statement, which takes too long; once more if it goes on nevertheless."""

    def limits_changed(self) -> None:
        """Keep to the limits of a configuration that was read again."""


class Tally:
    """What has been counted since the proxy started.

    Attributes:
        questions: commands of clients, without those that servers do not count as such either:
            COM_PING, COM_STATISTICS, and what prepares, resets and closes statements.
    """

    __slots__ = ("questions",)

    def __init__(self) -> None:
        self.questions = 0


@dataclass(slots=True)
class Services:
    """The shared parts of one running proxy.

    `config`, `users`, `has_admin`, `loopback_only` and `tls` are replaced together, with the authenticator's accounts,
    when the configuration is read again; everything else stays.

    Attributes:
        config: limits and time-outs.
        users: by name; empty when only the loopback root may enter.
        has_admin: one of them is an admin, for whom a place is kept.
        loopback_only: refuse everybody who is not on this machine.
        authenticator: decides logins.
        tls: how to speak TLS to clients, None when it is not offered.
        server_version, collation_id: what the greeting says.
        extends_metadata: every server can tell more of a column than its type, as MariaDB does.
        catalogs, registry, cache, clock: keyspaces, message tables, parsed statements, time.
        charset_settings: from the collation id of a login to the session's first variables.
        sessions: everybody who is connected, by connection id.
        is_stopping: nobody may log in any more.
        uptime_s: how long the proxy has been running.
        tally: what has been counted.
        nonce: 20 fresh random bytes for a login.
        backoff: how long logins wait. work: does what is costly of them.
        addresses: how many connections each address has.
        memory_of: the budget that all connections of a user share, by the user's name.
        coordinator: commits in two phases; None where the configuration does not ask for it.
        readers: the threads that large texts are read in.
        spawn: runs a coroutine in the background and logs its failure.
    """

    config: Server
    users: Mapping[str, User]
    has_admin: bool
    loopback_only: bool
    authenticator: Authenticator
    tls: ServerTls | None
    server_version: Callable[[], str]
    collation_id: Callable[[], int]
    extends_metadata: Callable[[], bool]
    catalogs: Catalogs
    registry: Registry
    cache: StatementCache
    clock: Clock
    charset_settings: Callable[[int], Settings]
    sessions: dict[int, Peer]
    is_stopping: Callable[[], bool]
    uptime_s: Callable[[], float]
    tally: Tally
    nonce: Callable[[], bytes]
    backoff: LoginBackoff
    memory_of: Callable[[str], Memory]
    work: LoginWork
    addresses: Addresses
    coordinator: Coordinator | None
    readers: ThreadPoolExecutor
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
