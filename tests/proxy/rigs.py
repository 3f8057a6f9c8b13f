"""Parts of a proxy in front of fake servers: a recorded link, one shard, a whole application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

from streamfrom.proxy.app.application import Application
from streamfrom.proxy.backends.account import SHARDS_ACCOUNT
from streamfrom.proxy.backends.session_variables import names
from streamfrom.proxy.backends.shard import ShardRuntime
from streamfrom.proxy.config.file import (
    Config,
    KeyspaceConfig,
    Server,
    ShardConfig,
    TransactionMode,
)
from streamfrom.proxy.execution.attempt import Attempt
from streamfrom.proxy.execution.executor import Executor
from streamfrom.proxy.execution.pending_effects import PendingEffects
from streamfrom.proxy.execution.reply import Reply
from streamfrom.proxy.execution.session_connections import SessionConnections
from streamfrom.proxy.execution.session_state import SessionState, Transaction
from streamfrom.proxy.execution.transaction import Branches
from streamfrom.proxy.net import Link
from streamfrom.proxy.rights.desk import RightsDesk
from streamfrom.proxy.sql.compile.large_texts import LargeTexts, readers
from streamfrom.proxy.sql.session_rights import SessionRights
from streamfrom.proxy.twophase.coordinator import Coordinator
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.sqlparse_ext.writes.hidden_writes import NOTHING_HIDDEN
from streamfrom.sqlparse_ext.writes.message_effects import Effect
from tests.proxy.fake_answers import Rows
from tests.proxy.fake_client import MODERN, Client, Result, read_result
from tests.proxy.fake_server import FakeServer
from tests.proxy.keyspaces import VSCHEMA
from tests.sqlparse_ext.facts import statement


class RecordingLink:
    """A client's link that records everything written to it."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.ahead = b""
        self.blocked = False
        self.room_bytes = 1 << 40
        self.closed = False
        self.peer = "127.0.0.1"
        self.is_loopback = True
        self.high_water_bytes: int | None = None
        self.is_reading = True

    @property
    def link(self) -> Link:
        return self  # type: ignore[return-value]

    def write(self, data: bytes) -> None:
        if not self.closed:
            data, self.ahead = self.ahead + data, b""
            self.written += data
            self.room_bytes -= len(data)
            self.blocked = self.blocked or self.room_bytes < 0

    def write_ahead(self, data: bytes, within_s: float = 0) -> None:
        self.ahead += data

    def close(self) -> None:
        self.closed = True

    abort = close

    @property
    def is_gone(self) -> bool:
        return self.closed

    def set_high_water(self, limit_bytes: int) -> None:
        self.high_water_bytes = limit_bytes

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True


NOW_NS = 1_800_000_000 * 10**9


class FixedClock:
    """A clock that stands still at NOW_NS."""

    def time_ns(self) -> int:
        return NOW_NS


def context_of(**parts: Any) -> Any:
    """Return the context of a session on the shards' account that has only these *parts*."""
    state: Any = SimpleNamespace(account=SHARDS_ACCOUNT)
    connections, registry = parts.get("connections"), parts.get("registry")
    desk = RightsDesk(lambda: 0.0, _never)
    rights = SessionRights(desk, state, connections, registry, set())  # type: ignore[arg-type]
    return SimpleNamespace(**({"rights": rights, "large_texts": LargeTexts(readers())} | parts))


def _never(work: Any) -> Any:
    raise AssertionError(f"asked for the shards' account: {work}")


class WaitingConnections:
    """A session's connections that only send again while a shard is away.

    branches.has_begun: it is in a transaction.
    """

    patiently: Any = SessionConnections.patiently
    choices: Any = SessionConnections.choices
    ask_any: Any = SessionConnections.ask_any
    retries: Any = SessionConnections.retries

    def __init__(self):
        self.branches = SimpleNamespace(has_begun=False, is_broken=False, held={})
        self._state = SimpleNamespace(is_stopped=False)
        self.failover_buffer_s = 7.0


class SessionRig:
    """The shell of one session without its sockets: an executor in front of real shards.

    Attributes:
        published: (shard, table, effects) as passed to the engine.
    """

    def __init__(self, *shards: ShardRuntime, coordinator: Coordinator | None = None) -> None:
        self.shards = shards
        self.link = RecordingLink()
        self.state = SessionState(int(MODERN), names("utf8mb4", "utf8mb4_general_ci"))
        self.published: list[tuple[str, str, list[Effect]]] = []
        self.effects = PendingEffects(
            lambda shard, table, effects: self.published.append((shard.name, table, effects)),
            lambda _shard: NOTHING_HIDDEN,
        )
        self.branches = Branches(
            self.state, self.effects, may_span_shards=True, coordinator=coordinator
        )
        self.spawned: list[asyncio.Task[None]] = []
        self.executor = Executor(
            self.state,
            SessionConnections(
                self.state, self.branches, failover_buffer_s=20.0, spawn=self._spawn
            ),
        )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self.spawned.append(asyncio.ensure_future(work))
        return self.spawned[-1]

    async def run(self, sql: str, shard: int = 0, database: str | None = "db") -> Result:
        """Run a statement on a shard as a session would; return the client's result."""
        at = len(self.link.written)
        reply = Reply(self.link.link, self.state, 1)
        found = statement(sql)
        await self.executor.relay(
            Attempt(self.shards[shard], database, query(found.sql), found.shape, reply)
        )
        return read_result(bytes(self.link.written[at:]), self.state.capabilities)

    async def begin(self, sql: str = "BEGIN") -> None:
        """Open a transaction that begins on each shard with its first statement there."""
        self.state.transaction = Transaction(sql.encode())

    async def leave(self) -> None:
        """End the session, and wait for the tasks that this starts."""
        self.executor.forget()
        await asyncio.gather(*self.spawned)


SERVER = Server(
    host="127.0.0.1",
    port=0,
    unix_socket=None,
    max_connections=100,
    max_connections_per_address=0,
    max_logins_per_address=100,
    connect_timeout_s=60.0,
    max_allowed_packet_bytes=64 << 20,
    tls=None,
    connection_memory_bytes=128 << 20,
    user_memory_bytes=512 << 20,
    merge_memory_bytes=64 << 20,
    failover_buffer_s=20.0,
    stream_grace_s=5.0,
    shutdown_grace_s=1.0,
    schema_reload_s=60.0,
    pool_timeout_s=20.0,
    transaction_mode=TransactionMode.MULTI,
    recovery_grace_s=1.0,
    statement_timeout_s=0.0,
    idle_timeout_s=0.0,
    auth_backoff_s=0.0,
)


def shard_config(
    server: FakeServer, name: str = "-", *, pool_size: int = 4, **dsn: Any
) -> ShardConfig:
    """Return the configuration of a shard on *server*."""
    return ShardConfig(name, server.dsn(**dsn), (), pool_size)


@asynccontextmanager
async def running_shard(
    server: FakeServer, name: str = "-", *, keyspace: str = "plain", pool_size: int = 4
) -> AsyncIterator[ShardRuntime]:
    runtime = ShardRuntime(
        keyspace,
        shard_config(server, name, pool_size=pool_size),
        pool_timeout_s=20.0,
        on_change=lambda _: None,
    )
    await runtime.start()
    try:
        yield runtime
    finally:
        await runtime.stop()


def config_of(
    *servers: FakeServer, users: tuple[Any, ...] = (), pool_size: int = 4, **settings: Any
) -> Config:
    """Return a configuration: `plain` on the first server and, with two, `commerce` on both."""
    keyspaces = [
        KeyspaceConfig("plain", None, (shard_config(servers[0], pool_size=pool_size),))
    ]
    if len(servers) == 2:
        halves = tuple(
            shard_config(server, name, pool_size=pool_size, database="shop")
            for server, name in zip(servers, ("-80", "80-"), strict=True)
        )
        keyspaces.append(KeyspaceConfig("commerce", VSCHEMA, halves))
    return Config(replace(SERVER, **settings), users, tuple(keyspaces))


class ProxyRig:
    """A running proxy and the clients of a test."""

    def __init__(self, app: Application) -> None:
        self.app = app
        self._clients: list[Client] = []

    @property
    def port(self) -> int:
        return self.app.port

    async def client(self, database: str | None = "plain", **options: Any) -> Client:
        """Return a client that is logged in; it is closed with the test."""
        client = await Client.connect(self.port, database=database, **options)
        self._clients.append(client)
        return client

    async def greeted(self, **options: Any) -> Client:
        """Return a client that has read the greeting."""
        client = await Client.greeted(self.port, **options)
        self._clients.append(client)
        return client

    async def close(self) -> None:
        for client in self._clients:
            await client.close()


@asynccontextmanager
async def running_proxy(
    *servers: FakeServer, users: tuple[Any, ...] = (), pool_size: int = 4, **settings: Any
) -> AsyncIterator[ProxyRig]:
    """Run a proxy in front of *servers*, configured by `config_of`."""
    config = config_of(*servers, users=users, pool_size=pool_size, **settings)
    async with Application(config) as app:
        proxy = ProxyRig(app)
        try:
            yield proxy
        finally:
            await proxy.close()


def add_tables(server: FakeServer, *tables: tuple[str, str, str]) -> None:
    """Set the tables that *server* shows to `streamfrom check`: names, comments, engines."""
    server.on(
        "table_comment, engine",
        Rows(
            ("table_name", "table_comment", "engine"),
            tuple(tuple(part.encode() for part in table) for table in tables),
            types=(FieldType.VAR_STRING,) * 3,
        ),
    )


INDEXES: Final = (
    (b"PRIMARY", b"0", b"id"),
    (b"poller_idx", b"1", b"time_acked"),
    (b"poller_idx", b"1", b"priority"),
    (b"poller_idx", b"1", b"time_next"),
)


def add_message_table(
    server: FakeServer,
    name: str = "msg",
    comment: str = "vitess_message,vt_ack_wait=30,vt_purge_after=3600,"
    "vt_batch_size=10,vt_cache_size=100,vt_poller_interval=30",
    engine: str = "InnoDB",
    options: str = "",
    indexes: Sequence[tuple[bytes, bytes, bytes]] = INDEXES,
) -> None:
    """Add a message table to *server*, whose create_options are *options*."""
    table = name.encode()
    columns = (
        (b"id", b"bigint", None, b"NO", b"", b"bigint(20) unsigned", None),
        (b"priority", b"tinyint", b"50", b"NO", b"", b"tinyint(4)", None),
        (b"epoch", b"bigint", b"0", b"NO", b"", b"bigint(20)", None),
        (b"time_next", b"bigint", b"0", b"YES", b"", b"bigint(20)", None),
        (b"time_acked", b"bigint", None, b"YES", b"", b"bigint(20)", None),
        (b"message", b"varchar", None, b"YES", b"", b"varchar(64)", b"utf8mb4_bin"),
    )
    nothing = (None, None, None, None)
    definitions = (
        (b"table", b"0", table, comment.encode(), options.encode(), None, *nothing),
        *((b"column", b"%d" % at, table, *column) for at, column in enumerate(columns)),
        *((b"index", b"%d" % at, table, *index, *nothing) for at, index in enumerate(indexes)),
    )
    server.on(
        "information_schema.tables",
        Rows(tuple("abcdefghij"), definitions, types=(FieldType.VAR_STRING,) * 10),
    )
    server.on(
        "SELECT table_name FROM information_schema.tables",
        Rows(("name",), ((table,),), types=(FieldType.VAR_STRING,)),
    )
    add_tables(server, (name, comment, engine))
    server.on("SELECT MIN(priority)", Rows(("least",), ((None,),)))
    server.on("FOR UPDATE SKIP LOCKED", Rows(("id", "epoch", "time_next", "id", "message")))
    server.on("SELECT `id`, IFNULL(time_next, 0)", Rows(("id", "time_next")))
    server.on(" WHERE 1 = 0", Rows(("id", "message")))


def add_decisions(server: FakeServer, table: str) -> None:
    """Add a table of decisions with the id *table* to *server*."""
    server.on(
        "SELECT branches FROM streamfrom.decisions",
        Rows(("branches",), ((f"{table} db".encode(),),)),
    )
    server.on("SELECT id, branches FROM streamfrom.decisions", Rows(("id", "branches")))


def claimed(ident: int, message: bytes) -> tuple[bytes, ...]:
    """Return a row as a claim reads it: id, epoch, time_next, and the streamed columns."""
    return b"%d" % ident, b"0", b"0", b"%d" % ident, message


def said(server):
    """Return the server's commands, without those that set a connection up."""
    return [
        text
        for text in server.heard
        if not text.startswith(("SET @@session", "SET NAMES '", "INIT_DB", "RESET", "QUIT"))
    ]
