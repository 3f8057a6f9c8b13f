"""A server of the configuration in the running proxy, a shard's primary or a replica: its pool, control connections and health.

Health is the server's answer to a check (`@@global.read_only`). A statement that meets a refused connection or a read-only
error causes a check at once. Statements outside a transaction can wait for a shard that is not available, so that they
survive a restart or a failover.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import (
    Awaitable,
    Callable,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import structlog

from streamfrom.proxy.backends.connect import open_backend
from streamfrom.proxy.backends.control_connection import (
    CONNECTIONS_MAX,
    NO_SUCH_THREAD,
    Control,
    kill_statement,
)
from streamfrom.proxy.backends.pooling.multiplexing import SharedConnections
from streamfrom.proxy.backends.pooling.pool import Pool
from streamfrom.proxy.backends.sequence_blocks import Sequences
from streamfrom.proxy.backends.session_variables import globals_of_logins
from streamfrom.proxy.errors import (
    BackendError,
    BackendUnavailable,
    NoDescriptor,
    PoolTimeout,
    ProxyError,
    ServerFull,
)
from streamfrom.proxy.log import SparingLog


if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from streamfrom.proxy.backends.account import Account
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.group_commit import GroupCommit
    from streamfrom.proxy.config.dsn import Dsn
    from streamfrom.proxy.config.file import ShardConfig


TIMEOUT_S: Final = 10.0


@dataclass(slots=True)
class Kills:
    """The KILL statements on one server, under the account of their target, because killing threads of others takes a privilege.

    The statement of a user's own account is killed on a connection of that account, opened outside of the pool, because a KILL is
    needed most when the pool is full. The last one is kept.
    """

    _control: Control  # kills statements under the account of the shard's address
    _open_backend: Callable[[Account, None, int], Awaitable[Backend]]
    _log: FilteringBoundLogger
    _kept: Backend | None = None
    _turns: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(CONNECTIONS_MAX)
    )

    async def kill(self, backend: Backend, *, query_only: bool = False) -> None:
        """End *backend* at its server, or only its statement; one that is gone already is no error.

        If the server refuses that to the account of *backend*, or cannot be asked, *backend* is closed.
        """
        if not backend.account.is_own:
            await self._control.kill(backend.thread_id, query_only=query_only)
            return
        try:
            async with asyncio.timeout(TIMEOUT_S), self._turns:
                await self._kill(backend, query_only=query_only)
        except (ProxyError, TimeoutError) as error:
            backend.abort()
            self._log.warning(
                "statement could not be killed: the server may continue it",
                user=backend.account.name,
                thread=backend.thread_id,
                reason=str(error) or f"no answer within {TIMEOUT_S:g} s",
            )

    def close(self) -> None:
        """Close the kept connection; the next KILL opens another one."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    async def _kill(self, backend: Backend, *, query_only: bool) -> None:
        ours, self._kept = self._kept, None
        if ours is not None and (ours.account != backend.account or ours.is_closed):
            ours.close()
            ours = None
        if ours is None:
            ours = await self._open_backend(backend.account, None, 0)
        try:
            await ours.query(kill_statement(backend.thread_id, query_only=query_only).encode())
        except BackendError as error:
            if error.code != NO_SUCH_THREAD:
                ours.close()
                raise
        # Others may have killed meanwhile.
        self.close()
        self._kept = ours


# The first releases with SKIP LOCKED: of MySQL, and of MariaDB.
_OLDEST: Final = ((8, 0), (10, 6))
# The reason why a primary cannot be used as one.
READ_ONLY: Final = "the server is read-only"
MOVED: Final = "the configuration names another server"
GONE: Final = "the configuration does not name it any more"
_PRIMARY: Final = "SELECT @@global.read_only OR @@global.innodb_read_only, VERSION()"
_UNKNOWN_VARIABLE: Final = 1193  # ER_UNKNOWN_SYSTEM_VARIABLE
# The names of the column on MySQL and on MariaDB.
_LAG_COLUMNS: Final = ("Seconds_Behind_Source", "Seconds_Behind_Master")


class Health(NamedTuple):
    """A server's own report; *trouble* is None when it may be used."""

    version: str
    trouble: str | None
    others: list[Any]  # the additional values that were requested


# The second argument continues the column list of a SELECT.
Probe: TypeAlias = "Callable[[Control, str], Awaitable[Health]]"


async def primary_health(control: Control, also: str) -> Health:
    """Query whether a primary can be written. Raises BackendUnavailable and BackendError."""
    ((read_only, version, *others),) = await control.rows(_PRIMARY + also)
    return Health(str(version), READ_ONLY if read_only else None, others)


@dataclass(slots=True)
class ReplicaHealth:
    """Queries a replica's lag; more than *lag_max_s* seconds are too much."""

    lag_max_s: float

    async def __call__(self, control: Control, also: str) -> Health:
        """Query. Raises BackendUnavailable and BackendError."""
        ((version, *others),) = await control.rows("SELECT VERSION()" + also)
        channels = await control.records("SHOW REPLICA STATUS")
        return Health(str(version), lag_trouble(channels, self.lag_max_s), others)


def lag_trouble(channels: Sequence[dict[str, Any]], lag_max_s: float) -> str | None:
    """Return why a replica cannot be read, by the rows of SHOW REPLICA STATUS."""
    if not channels:
        return "the server is no replica"
    for channel in channels:
        lag_s = next((channel[name] for name in _LAG_COLUMNS if name in channel), None)
        # Seconds_Behind_Source is NULL while a thread of the replication is stopped.
        if lag_s is None:
            why = channel.get("Last_SQL_Error") or channel.get("Last_IO_Error") or ""
            return f"replication is not running{': ' if why else ''}{why}"
        if int(lag_s) > lag_max_s:
            return f"{int(lag_s)} s behind, more than replica_max_lag"
    return None


log = structlog.get_logger()

# How often a healthy server is checked. Statements that fail cause a check at once, so this only bounds
# how long an unused server may be read-only unnoticed.
CHECK_INTERVAL_S = 2.0
CHECK_TIMEOUT_S = 10.0
# A caller that may use any shard tries another one if the answer takes longer than that.
ANSWERS_WITHIN_S: Final = 1.0
RETRY_FIRST_S = 0.05
RETRY_LAST_S = 1.0

_NOT_REACHED = "not reached yet"
_ONLY_SHARD = frozenset({"0", "-"})
# The log's texts for statements that get no connection.
_TURNED_AWAY: dict[type[Exception], str] = {
    NoDescriptor: "no file descriptor left for a connection to a shard",
    PoolTimeout: "no free connection",
    ServerFull: "the server takes no more connections",
}


class ShardRuntime:
    """One server of a shard, its primary or a replica, as one account on it sees it."""

    def __init__(
        self,
        keyspace: str,
        config: ShardConfig,
        *,
        pool_timeout_s: float,
        on_change: Callable[[ShardRuntime], None] = lambda _: None,
        health: Probe = primary_health,
    ) -> None:
        self.keyspace = keyspace
        self.name = config.name
        self.dsn = config.primary
        self.database = config.primary.database  # the real database's name on its server
        self.is_alone = config.name in _ONLY_SHARD  # it is the only shard of its keyspace
        self.version = ""  # the server's version, empty until it was first reached
        # The columns of tables of system schemas, by the server's version, as far as they were read.
        self.system_columns: dict[str, dict[tuple[str, str], tuple[str, ...]]] = {}
        # The shortest round trip to the server that was measured, in seconds; 0 while none was.
        self.way_s = 0.0
        # Why the shard is not available, None while it is.
        self.trouble: str | None = _NOT_REACHED
        self._log = log.bind(keyspace=keyspace, shard=config.name)
        if isinstance(health, ReplicaHealth):
            self._log = self._log.bind(replica=str(self.dsn))
        self._turned_away = SparingLog(self._log)
        # Connections for the proxy's own.
        self.control = Control(keyspace, config.name, config.primary)
        # The values of sequences that are reserved on this shard and still free.
        self.sequences = Sequences(self.control)
        # Connections for clients' statements.
        self.pool = Pool(
            keyspace,
            config.name,
            size=config.pool_size,
            timeout_s=pool_timeout_s,
            open_backend=self.open_backend,
            on_lost=self.suspect,
            on_timeout=self._note,
        )
        self.kills = Kills(self.control, self.open_backend, self._log)  # ends statements there
        # The connections that quick reads of many sessions share.
        self.shared_connections = SharedConnections(
            self.pool, lambda: self.way_s, is_allowed=config.share_reads
        )
        # The acks of several clients that are written together, by message table and account.
        self.group_commits: dict[tuple[str, Account], GroupCommit] = {}
        self._on_change = on_change
        self._health = health
        self._is_silent = False  # the current check takes longer than ANSWERS_WITHIN_S
        self._check_now = asyncio.Event()
        self._available = asyncio.Event()
        self._monitor: asyncio.Task[None] | None = None
        # The global variables that a login takes, as they were at the last check, when that was, and whether the server has all of them.
        self._globals: list[Any] = []
        self._globals_s = 0.0
        self._has_globals = True

    def __str__(self) -> str:
        return f"{self.keyspace}/{self.name}"

    @property
    def is_mariadb(self) -> bool:
        """True when the server is MariaDB, False while it was never reached."""
        return "MariaDB" in self.version

    @property
    def is_too_old(self) -> bool:
        """Whether the server has no SKIP LOCKED."""
        found = re.match(r"(\d+)\.(\d+)", self.version)
        return found is not None and tuple(map(int, found.groups())) < _OLDEST[self.is_mariadb]

    @property
    def place(self) -> tuple[str, str]:
        """The server and the database, which no other shard of a configuration has."""
        return self.dsn.server, self.database

    @property
    def is_retired(self) -> bool:
        """Whether the configuration no longer names it."""
        return self.trouble == GONE

    @property
    def is_answering(self) -> bool:
        """False also while the server takes long to answer a check, which is no trouble yet: it may hang."""
        return self.trouble is None and not self._is_silent

    async def start(self) -> None:
        """Check the server once, then keep watching it. A server that is down is no error."""
        await self.probe()
        self._monitor = asyncio.create_task(self._watch(), name=f"health {self}")

    def keep_limits(self, config: ShardConfig) -> None:
        """Apply the limits of *config*: the number of connections, and those that may be shared."""
        self.pool.resize(config.pool_size)
        self.shared_connections.allow(is_allowed=config.share_reads)

    def retire(self, refusal: Callable[[], ProxyError]) -> None:
        """Run no new statements: sessions get a *refusal*. Current work may end, until `stop`."""
        if self._monitor is not None:
            self._monitor.cancel()
        self.trouble = GONE
        self.pool.refuse(refusal)
        self.shared_connections.release()
        # Statements that wait for the server are refused as well.
        self._available.set()

    async def stop(self) -> None:
        """Stop watching and close every connection."""
        if self._monitor is not None:
            self._monitor.cancel()
            with suppress(asyncio.CancelledError):
                await self._monitor
        self.pool.close()
        self.kills.close()
        await self.control.close()

    async def open_backend(
        self, account: Account, database: str | None, variant: int, program: str | None = None
    ) -> Backend:
        """Open a connection. Raises BackendUnavailable and BackendError. *program*: as in `open_backend`."""
        try:
            return await open_backend(
                self.keyspace,
                self.name,
                self.dsn,
                account,
                database=database,
                variant=variant,
                program=program,
            )
        except (BackendUnavailable, BackendError) as error:
            self._note(error)
            if isinstance(error, BackendUnavailable):
                self.suspect()
            raise

    def _note(self, error: Exception) -> None:
        """Log that a statement gets no connection, if that is the meaning of *error*."""
        event = _TURNED_AWAY.get(type(error))
        if event is not None:
            self._turned_away.warning(event, server=self.dsn.server, reason=str(error))

    def move(self, dsn: Dsn) -> None:
        """Switch to the server at *dsn*, as after a failover; current work at the old one ends there."""
        self.dsn = dsn
        self.control.move(dsn)
        self.trouble = None  # the old server's trouble; only a change is reported
        self._set(MOVED)
        self.suspect()

    def suspect(self) -> None:
        """Check the server now, after a statement failed."""
        self._check_now.set()

    async def wait_available(self, deadline: float) -> bool:
        """Wait until the shard works again; False when *deadline* (loop time) came first."""
        # The caller's failure may be newer than the last check.
        self._available.clear()
        self.suspect()
        try:
            async with asyncio.timeout_at(deadline):
                await self._available.wait()
        except TimeoutError:
            return False
        return True

    async def _watch(self) -> None:
        retry_s = RETRY_FIRST_S
        while True:
            # A caller's suspicion shortens the wait of a healthy server only: one that is
            # known to be down is asked at its own pace, however many statements ask.
            if self.trouble is None:
                retry_s = RETRY_FIRST_S
                with suppress(TimeoutError):
                    async with asyncio.timeout(CHECK_INTERVAL_S):
                        await self._check_now.wait()
            else:
                retry_s = min(retry_s * 2, RETRY_LAST_S)
                await asyncio.sleep(retry_s)
            self._check_now.clear()
            await self.probe()

    async def probe(self) -> None:
        """Check the server now; the results are `trouble` and `version`."""
        loop = asyncio.get_running_loop()
        began_s, asked_s = loop.time(), time.monotonic()
        silence = loop.call_later(ANSWERS_WITHIN_S, self._fell_silent)
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                found = await self._ask()
        except TimeoutError:
            self._set(f"{self.dsn}: no answer within {CHECK_TIMEOUT_S:g} s")
            return
        except (BackendUnavailable, BackendError) as error:
            self._note(error)
            reason = error.reason if isinstance(error, BackendUnavailable) else str(error)
            self._set(self.with_address(reason))
            return
        finally:
            silence.cancel()
            self._is_silent = False
        took_s = loop.time() - began_s
        # The first answer had to open a connection.
        if self.trouble is None:
            self.way_s = min(self.way_s or took_s, took_s)
        self.version = found.version
        if found.others:
            if self._globals not in ([], found.others):
                self.pool.outdate(self._globals_s)  # one was changed past this process
            self._globals, self._globals_s = found.others, asked_s
        if found.trouble is not None:
            self.control.leave()
        self._set(found.trouble)

    def _fell_silent(self) -> None:
        self._is_silent = True
        self.pool.fell_silent()

    async def _ask(self) -> Health:
        """Query the health, and the global variables too once the kind of server is known."""
        also = ""
        if self.trouble is None and self._has_globals:
            also = globals_of_logins(is_mariadb=self.is_mariadb)
        try:
            return await self._health(self.control, also)
        except BackendError as error:
            if error.code != _UNKNOWN_VARIABLE or not also:
                raise
        self._has_globals = False
        return await self._health(self.control, "")

    def with_address(self, trouble: str) -> str:
        """Return the server's trouble with its address before it, unless that is in it."""
        return trouble if self.dsn.server in trouble else f"{self.dsn}: {trouble}"

    def _set(self, trouble: str | None) -> None:
        before, self.trouble = self.trouble, trouble
        if trouble is None:
            self._available.set()
        else:
            self._available.clear()
        # Logged when it changes, and not at every check.
        if (before is None) == (trouble is None) and before != _NOT_REACHED:
            return
        if trouble is None:
            self._log.info("shard available", version=self.version)
        else:
            self._log.warning("shard not available", reason=trouble)
            # The next server may be nearer or farther: measured again.
            self.way_s = 0.0
            self.shared_connections.release()
            # There may soon be another server at the address. Lent connections finish
            # their statements.
            self.pool.leave()
            self.kills.close()
        self._on_change(self)
