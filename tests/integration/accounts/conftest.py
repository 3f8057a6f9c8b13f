"""Users whose sessions log in at the servers by their own names and passwords."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from streamfrom.proxy.passwords.scramble import native_proof
from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml, user_toml, write_vschema
from tests.integration.conftest import SETTINGS, VSCHEMA


class Accounts:
    """Accounts at servers, which are dropped at the end.

    Attributes:
        password: of all of them.
    """

    password = "sésame's"

    def __init__(self, servers: Sequence[DatabaseServer]) -> None:
        self.servers = servers
        self._names: set[str] = set()

    def create(
        self, name: str, *grants: str, how: str = "IDENTIFIED BY 'sésame''s'", on: Any = None
    ) -> None:
        self._names.add(name)
        for server in self.servers if on is None else on:
            execute(server, f"CREATE USER '{name}'@'%' {how}")
            for grant in grants:
                execute(server, f"GRANT {grant} TO '{name}'@'%'")

    def everywhere(self, sql: str) -> None:
        for server in self.servers:
            execute(server, sql)

    @contextmanager
    def role(self, name: str, grant: str) -> Iterator[None]:
        self.everywhere(f"CREATE ROLE {name}")
        try:
            self.everywhere(f"GRANT {grant} TO {name}")
            yield
        finally:
            self.everywhere(f"DROP ROLE {name}")

    def toml(self, *names: str, more: str = "") -> str:
        """Return the users of the configuration; *more* has further keys of each."""
        self._names.update(names)
        return "".join(user_toml(name, self.password) + more for name in names)

    def connect(self, proxy: RunningProxy, name: str, **options: Any) -> Any:
        return proxy.connect(
            user=name, password=self.password.encode(), autocommit=True, **options
        )

    def change(self, client: Any, name: str, database: str) -> None:
        plugin = b"mysql_native_password"
        client._execute_command(
            0x11, b"%b\0\0%b\0\x2d\x00%b\0" % (name.encode(), database.encode(), plugin)
        )
        switch = client._read_packet().get_all_data()
        _, _, nonce = switch[1:].partition(b"\0")
        client.write_packet(native_proof(self.password.encode(), nonce[:20]))
        assert client._read_packet().is_ok_packet()

    def close(self) -> None:
        for name in self._names:
            self.everywhere(f"DROP USER IF EXISTS '{name}'@'%'")


@pytest.fixture
def accounts(servers: tuple[DatabaseServer, DatabaseServer]) -> Iterator[Accounts]:
    accounts = Accounts(servers)
    yield accounts
    accounts.close()


@pytest.fixture
def config(servers, sharded_database, tmp_path):
    """The configuration of a sharded keyspace with a table, but for its users."""
    for server in servers:
        sql = "CREATE TABLE customer (id BIGINT PRIMARY KEY, n INT, secret INT)"
        execute(server, sql, database=sharded_database)
    vschema = write_vschema(tmp_path, VSCHEMA)
    return SETTINGS + keyspace_toml("commerce", servers, sharded_database, vschema)
