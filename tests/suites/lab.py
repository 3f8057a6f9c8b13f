"""Where a suite runs: a server that nobody used before, and the proxy before it if it is to pass through."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streamfrom.proxy.embedded.servers import EmbeddedServer, Family, find_server
from tests.fixtures.database_servers import OPTIONS, execute
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml
from tests.proxy.certificates import write_certificate
from tests.suites.suite import SuiteError


SETTINGS: Final = """[server]
listen = "127.0.0.1:0"
connect_timeout = 60
[server.tls]
cert = "server.pem"
key = "server.key"
"""
# It logs in at the server as root does there, instead of using the shards' account.
OWN_ACCOUNT: Final = '[[users]]\nname = "root"\npassword = ""\nrole = "admin"\n'


@dataclass(frozen=True, slots=True)
class Place:
    """Where the suite connects, and the server's own version."""

    port: int
    version: str


@contextlib.contextmanager
def place(
    family: Family, databases: tuple[str, ...], *, through: bool, own: bool, proxy_log: Path
) -> Iterator[Place]:
    """Run a fresh server with *databases*, and before it the proxy if *through*; *own*: for a user with an account of its own."""
    program = find_server(family)
    if program is None:
        raise SuiteError(f"no {family} server on this machine")
    folder = Path(tempfile.mkdtemp(prefix="streamfrom-suites-"))
    try:
        with EmbeddedServer(folder / "server", program=program, options=OPTIONS) as server:
            for database in databases:
                execute(server, f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
            if not through:
                yield Place(server.port, server.version)
                return
            config = folder / "proxy.toml"
            keyspaces = (keyspace_toml(database, [server]) for database in databases)
            write_certificate(folder)
            users = OWN_ACCOUNT if own else ""
            config.write_text(SETTINGS + "".join(keyspaces) + users)
            proxy = RunningProxy(config)
            try:
                yield Place(proxy.port, server.version)
            finally:
                proxy.close()
                shutil.copy(proxy.log_path, proxy_log)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
