"""The laboratory: a durable server of our own, with the proxy and MySQL Router in front of it.

Everything listens on loopback, lives in one temporary folder and ends with the harness: in order
when a block is left, otherwise by the kernel's parent-death signal or the server's guard.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pymysql

from bench.fleet import LabError
from bench.machine import Usage, usage
from bench.processes import HOST, logged_port, process, serving, tail
from streamfrom.proxy.embedded.servers import EmbeddedServer, Family, family_of, find_server
from tests.fixtures.database_servers import free_port
from tests.fixtures.running_proxy import keyspace_toml


if TYPE_CHECKING:
    from pymysql.connections import Connection

SETTLE_S: Final = 10.0
MEET_S: Final = 30.0
HISTORY_MAX: Final = 2000
HISTORY: Final = (
    "SELECT `count` FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'"
)
MYSQL9: Final = Path("/opt/mysql9")

# A tuned server. No option trades durability away.
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
COUNTERS: Final = {"rows_updated": "Handler_update", "statements": "Questions"}
ROUTER_CONFIG: Final = f"""[DEFAULT]
{{plugins}}
{{user}}
logging_folder={{folder}}
runtime_folder={{folder}}
data_folder={{folder}}
[routing:bench]
bind_address={HOST}
bind_port={{port}}
destinations={HOST}:{{server}}
routing_strategy=round-robin
protocol=classic
max_connections=2000
client_ssl_mode=DISABLED
server_ssl_mode=DISABLED
"""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address for clients, and the process behind it."""

    port: int
    pid: int

    def usage(self) -> Usage:
        """Return the resource usage of the process so far."""
        return usage(self.pid)

    def execute(self, sql: str, database: str | None = None) -> tuple[tuple[Any, ...], ...]:
        """Run *sql* on a separate connection and return its rows."""
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
    """One keyspace of a proxy: the shards' servers, all with a database of the same name."""

    name: str
    servers: tuple[EmbeddedServer, ...]
    vschema: Mapping[str, Any] | None = None


def sharded(*tables: str) -> Mapping[str, Any]:
    """Return the vschema of a keyspace whose *tables* are sharded by `id`."""
    by_id = {"column_vindexes": [{"column": "id", "name": "hash"}]}
    vindexes = {"hash": {"type": "hash"}}
    return {"sharded": True, "vindexes": vindexes, "tables": dict.fromkeys(tables, by_id)}


class Meter:
    """The processor seconds of *processes* between `start` and `stop`, and the first server's statements and row updates."""

    def __init__(self, lab: "Lab", processes: Mapping[str, Endpoint]) -> None:
        self._lab, self._processes = lab, processes

    def start(self) -> None:
        """Start measuring."""
        self._before = self._now()

    def stop(self) -> dict[str, float]:
        """Return the usage since `start`."""
        now = self._now()
        used = {name: round(now[name] - before, 2) for name, before in self._before.items()}
        # Leave out the statements of this second measurement; its own count of statements comes last.
        return used | {"statements": used["statements"] - len(COUNTERS)}

    def _now(self) -> dict[str, float]:
        used = {f"cpu_s_{name}": each.usage().cpu_s for name, each in self._processes.items()}
        for name, counter in COUNTERS.items():
            used[name] = int(self._lab.execute(f"SHOW GLOBAL STATUS LIKE '{counter}'")[0][1])
        return used


class Lab:
    """The servers and proxies of a benchmark, as a context; `server` runs as long as the block lasts."""

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
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the servers and remove the folder."""
        for server in self._servers:
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def server(self) -> EmbeddedServer:
        """The first server."""
        return self._servers[0]

    def server_number(self, number: int) -> EmbeddedServer:
        """Return a server; start it on the first call."""
        while len(self._servers) <= number:
            server = EmbeddedServer(
                self.folder / f"server-{len(self._servers) + 1}",
                program=self._program,
                options=(*SERVER_OPTIONS, *REDO[family_of(self._program)]),
            )
            self._servers.append(server)
            server.start()
        return self._servers[number]

    @property
    def direct(self) -> Endpoint:
        """The first server's own address."""
        assert self.server.pid is not None
        return Endpoint(self.server.port, self.server.pid)

    def execute(
        self, sql: str, database: str | None = None, server: EmbeddedServer | None = None
    ) -> tuple[tuple[Any, ...], ...]:
        """Run *sql* directly on the server and return its rows."""
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
        """Return a table name that no earlier run used."""
        self._tables += 1
        return f"queue_{self._tables}"

    def settle(self) -> None:
        """Wait, for a bounded time, until InnoDB has purged the leftovers of earlier runs."""
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            rows = self.execute(HISTORY)
            if not rows or rows[0][0] <= HISTORY_MAX:
                return
            time.sleep(0.1)

    def meter(self, **processes: Endpoint) -> Meter:
        """Return a meter of *processes* and the server."""
        return Meter(self, {"server": self.direct, **processes})

    @contextlib.contextmanager
    def database(self, name: str, *servers: EmbeddedServer) -> Iterator[str]:
        """Create a fresh database on *servers* (none: the first), and drop it afterwards."""
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
        keyspace: Keyspace,
        *,
        settings: str = "",
        workers: int = 1,
        may_be_killed: bool = False,
    ) -> Iterator[Endpoint]:
        """Run the proxy in front of *keyspace*, in a separate process.

        settings: more lines for its configuration's `[server]`.
        workers: how many processes serve its port. Above 1, the endpoint's process is their parent.
        may_be_killed: the workload kills it.
        """
        self._started += 1
        config = self.folder / f"proxy-{self._started}.toml"
        text = f'[server]\nlisten = "{HOST}:0"\n{settings}\n[fleet]\nworkers = {workers}\n'
        vschema = None
        if keyspace.vschema is not None:
            vschema = config.with_suffix(".json")
            vschema.write_text(json.dumps(keyspace.vschema))
        config.write_text(
            text + keyspace_toml(keyspace.name, keyspace.servers, vschema=vschema)
        )
        program = [sys.executable, "-m", "streamfrom.proxy", "serve", "--config", str(config)]
        log = config.with_suffix(".log")
        with process(program, log, may_be_killed=may_be_killed) as running:
            yield Endpoint(logged_port(running, log), running.pid)

    @contextlib.contextmanager
    def keyspace(
        self, name: str, *, shards: int = 1, vschema: Mapping[str, Any] | None = None
    ) -> Iterator[Endpoint]:
        """Create a fresh database on *shards* servers, and run a proxy in front of them."""
        servers = tuple(map(self.server_number, range(shards)))
        with (
            self.database(name, *servers),
            self.proxy(Keyspace(name, servers, vschema)) as proxy,
        ):
            yield proxy

    @contextlib.contextmanager
    def fleet_of_two(
        self, name: str, *, may_be_killed: bool = False
    ) -> Iterator[tuple[Endpoint, Endpoint]]:
        """Create a fresh database with a fleet of two in front of it, whose first member is the dispatcher."""
        keyspace = Keyspace(name, (self.server,))
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.database(name))
            dispatcher = stack.enter_context(self.proxy(keyspace, may_be_killed=may_be_killed))
            # The first member must be the dispatcher before the second one starts.
            await_members(dispatcher, f"dispatches = '{name}/-'", 1)
            other = stack.enter_context(self.proxy(keyspace))
            for proxy in (dispatcher, other):
                await_members(proxy, "is_answering", 2)
            yield dispatcher, other

    def server_pids(self) -> list[int]:
        """Return the process ids of the running servers."""
        return [server.pid for server in self._servers if server.pid is not None]

    def proxy_log(self) -> str:
        """Return the end of the last proxy's log."""
        log = self.folder / f"proxy-{self._started}.log"
        return tail(log).strip() if log.exists() else ""

    @contextlib.contextmanager
    def router(self) -> Iterator[Endpoint]:
        """Run MySQL Router in front of the first server. Call only if `router_program` is not None."""
        program = router_program()
        assert program is not None
        folder = self.folder / "router"
        folder.mkdir(exist_ok=True)
        port = free_port()
        plugins = MYSQL9 / "root/usr/lib/mysqlrouter/plugin"
        config, log = folder / "router.conf", folder / "router.log"
        config.write_text(
            ROUTER_CONFIG.format(
                plugins=f"plugin_folder={plugins}" if plugins.is_dir() else "",
                user="user=root" if os.geteuid() == 0 else "",
                folder=folder,
                port=port,
                server=self.server.port,
            )
        )
        with serving([str(program), "-c", str(config)], log, port) as pid:
            yield Endpoint(port, pid)


def await_members(proxy: Endpoint, condition: str, count: int) -> None:
    """Wait until *proxy* lists *count* members of its fleet that match *condition*.

    Raises:
        LabError: it never does.
    """
    deadline = time.monotonic() + MEET_S
    while len(proxy.execute(f"SELECT 1 FROM streamfrom.members WHERE {condition}")) < count:
        if time.monotonic() > deadline:
            raise LabError(f"a fleet does not come to {count} with {condition}")
        time.sleep(0.1)


def router_program() -> Path | None:
    """Return MySQL Router's program, or None if it is not installed."""
    found = shutil.which("mysqlrouter") or shutil.which("mysqlrouter", path=MYSQL9 / "bin")
    return Path(found) if found else None
