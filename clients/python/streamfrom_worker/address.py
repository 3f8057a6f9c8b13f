"""The address of the proxy and the credentials, parsed from one URL."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


DEFAULT_PORT = 15306
SCHEMES = ("mysql", "streamfrom")
OPTIONS = ("unix_socket", "ssl_ca")


@dataclass(frozen=True)
class Address:
    """The parameters of a connection. `repr` hides the password."""

    host: str
    port: int
    user: str
    database: str
    password: str = field(repr=False)
    unix_socket: str | None = None
    ssl_ca: str | None = None

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of `asyncmy.connect`."""
        options: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "database": self.database,
            "charset": "utf8mb4",
        }
        if self.unix_socket:
            options["unix_socket"] = self.unix_socket
        if self.ssl_ca:
            options["ssl"] = ssl.create_default_context(cafile=self.ssl_ca)
        return options


def parse(url: str) -> Address:
    """Parse `mysql://user:password@host:port/keyspace?ssl_ca=FILE`.

    The default port is 15306. `unix_socket=PATH` replaces host and port.

    Raises:
        ValueError: the URL has another scheme, no user, no keyspace, or an unknown option.
    """
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise ValueError(
            f"the URL must start with mysql:// or streamfrom://, not {parts.scheme or url!r}"
        )
    database = unquote(parts.path.lstrip("/"))
    if not parts.username or not database:
        raise ValueError(
            "the URL must name a user and a keyspace: mysql://user:password@host:port/keyspace"
        )
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(set(given) - set(OPTIONS)):
        raise ValueError(
            f"unknown option {unknown[0]!r} in the URL; there are {', '.join(OPTIONS)}"
        )
    return Address(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or DEFAULT_PORT,
        user=unquote(parts.username),
        password=unquote(parts.password or ""),
        database=database,
        unix_socket=given.get("unix_socket"),
        ssl_ca=given.get("ssl_ca"),
    )
