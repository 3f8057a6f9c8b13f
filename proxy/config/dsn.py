"""A backend's address: mysql://user:password@host:port/database?ssl_ca=&ssl_mode=&unix_socket=.

User and password are URL-encoded as in any URL. A variable of the environment inside them
(`mysql://root:${DB_PASSWORD}@db1`) stands for its bare value, so a password with `@` or `/` needs
no encoding there. No error repeats any part of the address, as each may hold the password.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from streamfrom.proxy.config.toml_values import ConfigError, Secret, Surroundings
from streamfrom.proxy.net import is_loopback


PORT_DEFAULT: Final = 3306
UNIX_SOCKET_BYTES_MAX: Final = 107  # sun_path of unix(7) without its closing zero byte
FORM: Final = "mysql://user:password@host:port/database"
# Characters that end the password too early.
_ENCODE: Final = "; in a password write %2F for / and %3F for ?, or take it from ${NAME}"
PARAMETERS: Final = ("ssl_ca", "ssl_mode", "unix_socket")


class SslMode(StrEnum):
    """How a backend connection is protected; the names are those of MySQL's --ssl-mode."""

    DISABLED = "disabled"  # plain bytes
    PREFERRED = "preferred"  # TLS if the server offers it, unverified
    REQUIRED = "required"  # TLS, unverified
    # TLS with a certificate that ssl_ca (or the system's store) vouches for.
    VERIFY_CA = "verify_ca"
    VERIFY_IDENTITY = "verify_identity"  # the same, and the certificate must name the host


@dataclass(frozen=True, slots=True)
class Dsn:
    """The address of a backend, and the account that connects to it. str() is safe to log: it has no password."""

    host: str
    port: int
    unix_socket: str | None  # if set it is used instead of host and port
    user: str
    password: Secret
    database: str
    ssl_mode: SslMode
    ssl_ca: str | None  # absolute path of the authorities to trust; None is the system's store

    @property
    def server(self) -> str:
        """Where the server listens, host:port or the path of its socket."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.unix_socket or f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"mysql://{quote(self.user)}@{self.server}/{self.database}"


def parse(text: str, key: str, *, database: str, around: Surroundings) -> Dsn:
    """Return the address in *text*, the value of the configuration's *key*.

    An address without a database means *database*. Raises ConfigError.
    """
    try:
        url = urlsplit(_expanded(text, key, around))
        port = url.port
    except ValueError:
        # The message of urllib may hold a part of the address.
        raise ConfigError(key, f"expected {FORM}, got a malformed address{_ENCODE}") from None
    if url.scheme != "mysql":
        raise ConfigError(key, f"expected {FORM}, got another scheme or none")
    if url.fragment:
        raise ConfigError(key, f"expected {FORM}, got a # (write it as %23)")
    if not url.username:
        raise ConfigError(key, f"expected {FORM}, got no user")
    name = unquote(url.path.removeprefix("/")) or database
    if "/" in name:
        raise ConfigError(key, f"expected {FORM}, got a / in the database's name{_ENCODE}")
    parameters = _parameters(url.query, key)
    socket_text = parameters.get("unix_socket")
    unix_socket = socket_path(socket_text, key, around) if socket_text else None
    if port == 0:
        raise ConfigError(key, "expected a port from 1 to 65535, got 0")
    if not url.hostname and unix_socket is None:
        raise ConfigError(key, f"expected {FORM}, got neither a host nor a unix_socket")
    host = unquote(url.hostname or "localhost")
    ssl_ca = parameters.get("ssl_ca")
    is_local = unix_socket is not None or is_loopback(host)
    mode = _ssl_mode(parameters.get("ssl_mode"), key, has_ca=bool(ssl_ca), is_local=is_local)
    ca = str(around.readable_file(ssl_ca, f"{key} (ssl_ca)")) if ssl_ca else None
    return Dsn(
        host=host,
        port=PORT_DEFAULT if port is None else port,
        unix_socket=unix_socket,
        user=unquote(url.username),
        password=Secret(unquote(url.password or "")),
        database=name,
        ssl_mode=mode,
        ssl_ca=ca,
    )


def _expanded(text: str, key: str, around: Surroundings) -> str:
    """Return *text* with its variables; a value inside user:password is quoted on its way in."""
    scheme, mark, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    userinfo, at, place = authority.rpartition("@")
    if not at or "${" in scheme:
        return around.expand(text, key)
    # Elsewhere a variable may stand for several parts of the address, such as host:port/database.
    who = around.expand(userinfo, key, written=partial(quote, safe=""))
    return f"{scheme}{mark}{who}{at}{around.expand(place + slash + path, key)}"


def _parameters(query: str, key: str) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    for name, _ in pairs:
        if name not in PARAMETERS:
            raise ConfigError(
                key, f"unknown parameter after ?; expected one of {', '.join(PARAMETERS)}"
            )
    if len(pairs) > len(dict(pairs)):
        raise ConfigError(key, "expected each parameter after ? once")
    return dict(pairs)


def socket_path(text: str, key: str, around: Surroundings) -> str:
    """Return the absolute path of a unix socket, which need not exist yet."""
    path = str(around.folder / text)
    size = len(path.encode())
    if size > UNIX_SOCKET_BYTES_MAX:
        raise ConfigError(
            key,
            f"expected a unix socket's path of at most {UNIX_SOCKET_BYTES_MAX} bytes, got {size}",
        )
    return path


def _ssl_mode(text: str | None, key: str, *, has_ca: bool, is_local: bool) -> SslMode:
    if text is None:
        if has_ca:
            return SslMode.VERIFY_CA
        # A connection within the machine needs no cipher, which would halve its speed.
        return SslMode.DISABLED if is_local else SslMode.PREFERRED
    try:
        mode = SslMode(text.lower())
    except ValueError:
        raise ConfigError(key, f"expected ssl_mode {', '.join(SslMode)}, got another") from None
    if has_ca and mode is SslMode.DISABLED:
        raise ConfigError(key, "expected no ssl_ca with ssl_mode=disabled")
    return mode
