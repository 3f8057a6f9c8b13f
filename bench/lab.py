"""The laboratory: a durable server of our own, the proxy and MySQL Router before it.

All of it listens on loopback, lives in one temporary folder and ends with the harness: in order
when a block is left, by the kernel's parent-death signal or the server's guard otherwise.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import pymysql

from bench.machine import Usage, usage
from bench.processes import HOST, LabError, await_port, free_port, logged_port, process, tail
from streamfrom.proxy.embedded.servers import EmbeddedServer, Family, family_of, find_server


if TYPE_CHECKING:
    from pymysql.connections import Connection

SETTLE_S: Final = 10.0
MEET_S: Final = 30.0
HISTORY_MAX: Final = 2000
MYSQL9: Final = Path("/opt/mysql9")

# A server somebody tuned: nothing here trades durability away.
SERVER_OPTIONS: Final = (
    "--max-connections=4000",
    "--innodb-buffer-pool-size=2G",
    "--table-open-cache=4000",
    "--max-allowed-packet=64M",
)
REDO: Final = {
    Family.MARIADB: ("--innodb-log-file-size=1G",),
    Family.MYSQL: ("--innodb-redo-log-capacity=1G",),
}
DURABLE_SETTINGS: Final = (
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_doublewrite",
    "sync_binlog",
    "log_bin",
    "innodb_buffer_pool_size",
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where clients connect, and the process behind it."""

    port: int
    pid: int

    def usage(self) -> Usage:
        """Return what the process has used."""
        return usage(self.pid)

    def execute(self, sql: str, database: str | None = None) -> tuple[tuple[Any, ...], ...]:
        """Run *sql* on a connection of its own, and return its rows."""
        with (
            pymysql.connect(
                host=HOST, port=self.port, user="root", database=database, autocommit=True
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(sql)
            return tuple(cursor.fetchall())


@dataclass(frozen=True, slots=True)
class Keyspace:
    """One keyspace of a proxy: the shards' servers, all with a database of the given name."""

    name: str
    servers: tuple[EmbeddedServer, ...]
    vschema: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Meter:
    """What the processes used between `start` and now."""

    processes: Mapping[str, Endpoint]
    lab: "Lab"
    _cpu_s: dict[str, float] = field(default_factory=dict)
    _questions: int = 0
    _pings: int = 0
    _rows_updated: int = 0

    def start(self) -> None:
        """Begin to measure."""
        self._rows_updated = self.lab.status("Handler_update")
        self._pings = self.lab.status("Com_admin_commands")
        self._questions = self.lab.status("Questions")
        self._cpu_s = {name: one.usage().cpu_s for name, one in self.processes.items()}

    def stop(self) -> dict[str, float]:
        """Return the CPU seconds of each process, and the first server's statements, pings and row updates."""
        used = {
            f"cpu_s_{name}": round(one.usage().cpu_s - self._cpu_s[name], 2)
            for name, one in self.processes.items()
        }
        # The first count is among its own statements.
        used["statements"] = self.lab.status("Questions") - self._questions - 1
        # A ping is no statement to the server's own count.
        used["pings"] = self.lab.status("Com_admin_commands") - self._pings
        return used | {"rows_updated": self.lab.status("Handler_update") - self._rows_updated}


class Lab:
    """Use as a context; `server` runs for as long as the block lasts."""

    def __init__(self, family: Family | None = None) -> None:
        program = find_server(family)
        if program is None:
            raise LabError(f"found no {family or 'MySQL or MariaDB'} server on this machine")
        self._program = program
        self.folder = Path(tempfile.mkdtemp(prefix="streamfrom-bench-"))
        self._servers: list[EmbeddedServer] = []
        self._started = 0
        self._admins: dict[int, Connection[Any]] = {}
        self._tables = 0

    def __enter__(self) -> Self:
        try:
            self.server_number(0)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the servers and remove the folder."""
        for server in self._servers:
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def server(self) -> EmbeddedServer:
        """The first server."""
        return self._servers[0]

    def server_number(self, number: int) -> EmbeddedServer:
        """Return a server, started if it is the first time that it is asked for."""
        while len(self._servers) <= number:
            server = EmbeddedServer(
                self.folder / f"server-{len(self._servers) + 1}",
                program=self._program,
                durable=True,
                options=(*SERVER_OPTIONS, *REDO[family_of(self._program)]),
            )
            self._servers.append(server)
            server.start()
        return self._servers[number]

    @property
    def direct(self) -> Endpoint:
        """The first server as clients see it."""
        assert self.server.pid is not None
        return Endpoint(self.server.port, self.server.pid)

    def execute(
        self, sql: str, database: str | None = None, server: EmbeddedServer | None = None
    ) -> tuple[tuple[Any, ...], ...]:
        """Run *sql* straight on the server and return its rows."""
        where = server or self.server
        if where.port not in self._admins:
            self._admins[where.port] = pymysql.connect(
                host=HOST, port=where.port, user="root", autocommit=True
            )
        connection = self._admins[where.port]
        if database is not None:
            connection.select_db(database)
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return tuple(cursor.fetchall())

    def fresh_name(self) -> str:
        """Return a table's name that no run had before."""
        self._tables += 1
        return f"queue_{self._tables}"

    def status(self, name: str) -> int:
        """Return a counter of the first server, such as ``Questions``."""
        return int(self.execute(f"SHOW GLOBAL STATUS LIKE '{name}'")[0][1])

    def settle(self) -> None:
        """Wait until InnoDB has purged what earlier runs left behind, for a bounded time."""
        deadline = time.monotonic() + SETTLE_S
        while self._history() > HISTORY_MAX and time.monotonic() < deadline:
            time.sleep(0.1)

    def durable_settings(self) -> dict[str, str]:
        """Return the server's settings that durability and comparability hang on."""
        names = ", ".join(f"'{name}'" for name in DURABLE_SETTINGS)
        rows = self.execute(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
        return {str(name): str(value) for name, value in rows}

    def meter(self, **processes: Endpoint) -> Meter:
        """Return a meter of *processes* and the server itself."""
        return Meter({"server": self.direct, **processes}, self)

    @contextlib.contextmanager
    def database(self, name: str, *servers: EmbeddedServer) -> Iterator[str]:
        """Make a fresh database on *servers* (none: the first), and drop it in the end."""
        for server in servers or (self.server,):
            self.execute(f"DROP DATABASE IF EXISTS {name}", server=server)
            self.execute(f"CREATE DATABASE {name}", server=server)
        try:
            yield name
        finally:
            for server in servers or (self.server,):
                if server.is_running:
                    self.execute(f"DROP DATABASE {name}", server=server)

    @contextlib.contextmanager
    def proxy(
        self,
        *keyspaces: Keyspace,
        settings: str = "",
        workers: int = 1,
        may_be_killed: bool = False,
    ) -> Iterator[Endpoint]:
        """Run the proxy before *keyspaces*, in a process of its own.

        settings: further lines of its configuration's `[server]`.
        workers: how many processes serve its port; above 1 they have a parent, which the process is then.
        may_be_killed: the workload kills it.
        """
        self._started += 1
        config = self.folder / f"proxy-{self._started}.toml"
        config.write_text(self._config(config, keyspaces, settings, workers))
        program = [sys.executable, "-m", "streamfrom.proxy", "serve", "--config", str(config)]
        log = config.with_suffix(".log")
        with process(program, log, may_be_killed=may_be_killed) as running:
            yield Endpoint(logged_port(running, log), running.pid)

    @contextlib.contextmanager
    def keyspace(
        self,
        name: str,
        *,
        shards: int = 1,
        vschema: Mapping[str, Any] | None = None,
        settings: str = "",
    ) -> Iterator[Endpoint]:
        """Make a fresh database on so many servers, and run a proxy before them."""
        servers = tuple(map(self.server_number, range(shards)))
        with (
            self.database(name, *servers),
            self.proxy(Keyspace(name, servers, vschema), settings=settings) as proxy,
        ):
            yield proxy

    @contextlib.contextmanager
    def fleet_of_two(
        self, name: str, *, may_be_killed: bool = False
    ) -> Iterator[tuple[Endpoint, Endpoint]]:
        """Make a fresh database with a fleet before it, of which the first member dispatches."""
        keyspace = Keyspace(name, (self.server,))
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.database(name))
            dispatcher = stack.enter_context(self.proxy(keyspace, may_be_killed=may_be_killed))
            # The first keeps the shard's messages, so it is to have them before there is another.
            await_members(dispatcher, f"dispatches = '{name}/0'", 1)
            other = stack.enter_context(self.proxy(keyspace))
            for proxy in (dispatcher, other):
                await_members(proxy, "is_answering", 2)
            yield dispatcher, other

    def server_pids(self) -> list[int]:
        """Return the process ids of the servers that run."""
        return [server.pid for server in self._servers if server.pid is not None]

    def proxy_log(self) -> str:
        """Return the end of what the last proxy logged."""
        log = self.folder / f"proxy-{self._started}.log"
        return tail(log).strip() if log.exists() else ""

    @contextlib.contextmanager
    def router(self) -> Iterator[Endpoint]:
        """Run MySQL Router before the first server; only where `router_program` is not None."""
        program = router_program()
        assert program is not None
        folder = self.folder / "router"
        folder.mkdir(exist_ok=True)
        port = free_port()
        plugins = MYSQL9 / "root/usr/lib/mysqlrouter/plugin"
        lines = [
            "[DEFAULT]",
            *([f"plugin_folder={plugins}"] if plugins.is_dir() else []),
            f"logging_folder={folder}",
            f"runtime_folder={folder}",
            f"data_folder={folder}",
            *(["user=root"] if os.geteuid() == 0 else []),
            "[routing:bench]",
            f"bind_address={HOST}",
            f"bind_port={port}",
            f"destinations={HOST}:{self.server.port}",
            "routing_strategy=round-robin",
            "protocol=classic",
            "max_connections=2000",
            "client_ssl_mode=DISABLED",
            "server_ssl_mode=DISABLED",
        ]
        config = folder / "router.conf"
        config.write_text("\n".join(lines) + "\n")
        log = folder / "output.log"
        with process([str(program), "-c", str(config)], log) as running:
            await_port(port, running, log)
            yield Endpoint(port, running.pid)

    def _history(self) -> int:
        rows = self.execute(
            "SELECT `count` FROM information_schema.innodb_metrics"
            " WHERE name = 'trx_rseg_history_len'"
        )
        return int(rows[0][0]) if rows else 0

    def _config(
        self,
        path: Path,
        keyspaces: tuple[Keyspace, ...],
        settings: str,
        workers: int,
    ) -> str:
        lines = ["[server]", f'listen = "{HOST}:0"', settings]
        lines += ["[fleet]", f"workers = {workers}"]
        for keyspace in keyspaces:
            lines.append(f"[keyspaces.{keyspace.name}]")
            if keyspace.vschema is not None:
                vschema = path.with_suffix(f".{keyspace.name}.json")
                vschema.write_text(json.dumps(keyspace.vschema))
                lines.append(f'vschema = "{vschema}"')
            names = {1: ("0",), 2: ("-80", "80-")}[len(keyspace.servers)]
            for name, server in zip(names, keyspace.servers, strict=True):
                lines += [
                    f"[[keyspaces.{keyspace.name}.shards]]",
                    f'name = "{name}"',
                    f'primary = "mysql://root@{HOST}:{server.port}/{keyspace.name}"',
                ]
        return "\n".join(lines) + "\n"


def await_members(proxy: Endpoint, condition: str, count: int) -> None:
    """Wait until *proxy* knows *count* members of its fleet of which *condition* is true.

    Raises:
        LabError: it never does.
    """
    deadline = time.monotonic() + MEET_S
    while len(proxy.execute(f"SELECT 1 FROM streamfrom.members WHERE {condition}")) < count:
        if time.monotonic() > deadline:
            raise LabError(f"a fleet does not come to {count} with {condition}")
        time.sleep(0.1)


def router_program() -> Path | None:
    """Return MySQL Router's program, None where it is not installed."""
    found = shutil.which("mysqlrouter") or shutil.which("mysqlrouter", path=MYSQL9 / "bin")
    return Path(found) if found else None
