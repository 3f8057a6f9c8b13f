"""The proxy logs in by every plugin that a password answers, as the server here has it, over each transport."""

from typing import Any

import pytest

from streamfrom.proxy.accounts.user_logins import user_logins
from streamfrom.proxy.backends.account import Account
from streamfrom.proxy.backends.connect import open_backend
from streamfrom.proxy.config.dsn import Dsn, SslMode
from streamfrom.proxy.config.file import (
    Config,
    KeyspaceConfig,
    SessionAccount,
    ShardConfig,
    User,
)
from streamfrom.proxy.config.toml_values import Secret
from streamfrom.proxy.embedded.servers import Family
from streamfrom.proxy.errors import BackendError
from tests.fixtures.database_servers import DatabaseServer, execute
from tests.integration.accounts.conftest import Accounts
from tests.proxy.rigs import SERVER


# How an account is made with a password.
WAYS = {
    Family.MARIADB: (
        "IDENTIFIED VIA mysql_native_password USING PASSWORD('{}')",
        "IDENTIFIED VIA ed25519 USING PASSWORD('{}')",
    ),
    Family.MYSQL: (
        "IDENTIFIED WITH caching_sha2_password BY '{}'",
        "IDENTIFIED WITH sha256_password BY '{}'",
    ),
}
PASSWORDS = ("a", "sésame's", "x" * 100)


def dsn_of(server: DatabaseServer, **options: Any) -> Dsn:
    fields: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": server.port,
        "unix_socket": None,
        "user": "root",
    }
    fields |= {"password": Secret(""), "database": "d", "ssl_mode": SslMode.DISABLED}
    return Dsn(**(fields | {"ssl_ca": None} | options))


async def who(dsn: Dsn, name: str, password: str) -> bytes:
    """Return the answer to CURRENT_USER() on a new connection."""
    account = Account(name, Secret(password))
    backend = await open_backend("ks", "-", dsn, account, database=None)
    try:
        return (await backend.query(b"SELECT CURRENT_USER()")).rows[0]
    finally:
        backend.close()


async def checked(dsn: Dsn, name: str, password: str) -> str:
    """Return how `streamfrom check` begins what it reports of an account without a right."""
    user = User(name, Secret(password), None, account=SessionAccount.OWN)
    keyspace = KeyspaceConfig("ks", None, (ShardConfig("-", dsn, (), 4),))
    (finding,) = [each async for each in user_logins(Config(SERVER, (user,), (keyspace,)))]
    return finding.text.partition(" use")[0]


@pytest.mark.parametrize("index", [0, 1])
async def test_a_password_answers(server: DatabaseServer, index: int) -> None:
    how = WAYS[server.family][index]
    accounts = Accounts([server])
    transports = {"plain": dsn_of(server)}
    if (socket := getattr(server, "socket", None)) is not None:
        transports["socket"] = dsn_of(server, unix_socket=socket)
    if server.family is Family.MYSQL:
        transports["tls"] = dsn_of(server, ssl_mode=SslMode.REQUIRED)
    if "ed25519" in how:
        execute(server, "INSTALL SONAME 'auth_ed25519'")
    try:
        for number, password in enumerate(PASSWORDS):
            for transport, dsn in transports.items():
                name = f"{transport}{number}"
                accounts.create(name, how=how.format(password.replace("'", "''")))
                # The second login of caching_sha2_password is its fast one.
                for _ in range(2):
                    assert (await who(dsn, name, password))[1:] == f"{name}@%".encode()
                assert await checked(dsn, name, password) == f"user {name} logs in, and may"
                with pytest.raises(BackendError) as refused:
                    await who(dsn, name, f"{password}x")
                assert refused.value.code == 1045
                assert password not in str(refused.value).replace(name, "") or password == "a"
    finally:
        accounts.close()
        if "ed25519" in how:
            execute(server, "UNINSTALL SONAME 'auth_ed25519'")
