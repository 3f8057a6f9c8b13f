"""The address of the proxy, and queries to it.

The only module of the pipeline that opens connections. All queries here address one shard by
its target (`keyspace:shard`), so that no result depends on how the proxy merges shards.
"""

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import pymysql
import pymysql.connections
import pymysql.converters

from streamfrom.spark.errors import JobError, RequestError


# Modern clients set this flag, the driver does not: the server then sends no packet between definitions and rows.
DEPRECATE_EOF: Final = 1 << 24
# A setting for sessions that read or write times. Servers convert TIMESTAMP to the session's zone, which may differ
# between servers and between summer and winter.
IN_UTC: Final = "SET time_zone = '+00:00'"
# The server's current time in microseconds since the epoch. UNIX_TIMESTAMP(NOW(6)) depends on its zone, where one hour of
# each autumn exists twice, and is an hour behind in the second one.
NOW_US: Final = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
# The command line's options for the address and the password; other callers use other names.
_OPTIONS: Final = ("--proxy", "--password-env")
# Servers read 1E-7 as a DOUBLE.
_ENCODERS: Final = {
    **pymysql.converters.encoders,
    Decimal: lambda value, _=None: format(value, "f"),
}
_LOCK_TRIES: Final = 5
_LOST_LOCKS: Final = frozenset({1205, 1213})  # lock wait timeout, deadlock
_UNREACHABLE: Final = 2003  # the client library's own error: no server listens at the address


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A keyspace behind a proxy, and the user for the login.

    ssl_ca: the CA file for the proxy's certificate; TLS is only required if it is given.
    options: the names under which the user gave address and password, for error texts.
    """

    host: str
    port: int
    user: str
    keyspace: str
    password: str = field(default="", repr=False)
    ssl_ca: str = ""
    options: tuple[str, str] = field(default=_OPTIONS, repr=False, compare=False)

    def ask(self, sql: str, values: "Sequence[Any]" = (), shard: str = "") -> list[Any]:
        """Run one statement over a separate connection; return its rows, undecoded."""
        with self.connect(shard) as connection:
            return ask(connection, sql, values)

    def connect(
        self, shard: str = "", setting: str | None = None, *, streams: bool = False
    ) -> Any:
        """Return an autocommitting connection to the keyspace, or to one *shard* of it.

        setting: a statement to run first, for the session.
        streams: only `spark.fetching` reads the rows, so the proxy may pass on a server's reply unchanged.

        Raises:
            JobError: the proxy is unreachable, or refuses the user, keyspace or shard.
        """
        try:
            return _Connection(
                host=self.host,
                port=self.port,
                user=self.user,
                password=self.password,
                database=f"{self.keyspace}:{shard}" if shard else self.keyspace,
                charset="utf8mb4",
                autocommit=True,
                ssl={"ca": self.ssl_ca} if self.ssl_ca else None,
                init_command=setting,
                client_flag=DEPRECATE_EOF if streams else 0,
                conv=_ENCODERS,  # keep values as the server sent them
            )
        except (pymysql.err.MySQLError, OSError) as error:
            if isinstance(error, OSError) or error.args[:1] == (_UNREACHABLE,):
                raise JobError(
                    f"the proxy at {self.host}:{self.port} cannot be reached: {error}; start it, or"
                    f" check {self.options[0]}"
                ) from error
            raise JobError(
                f"the proxy at {self.host}:{self.port} refused {self.user!r} for keyspace"
                f" {self.keyspace!r}: {error}; check {' and '.join(self.options)}"
            ) from error


class _Connection(pymysql.connections.Connection):  # type: ignore[misc] # it has no types
    """A connection that uses TLS if the server offers it, even if it is not required, as the driver does.

    For that the driver would load all certificates of the system each time (20 ms of processor time) and check none.
    """

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        context: ssl.SSLContext = super()._create_ssl_ctx(sslp) if sslp else _unverified()
        return context


@cache
def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def parse_endpoint(
    url: str, password: str = "", options: tuple[str, str] = _OPTIONS
) -> Endpoint:
    """Parse `mysql://user@host:port/keyspace`, where `?ssl_ca=FILE` requires TLS; *options* as for `Endpoint`.

    Raises:
        RequestError: the URL is malformed, or contains a password, which process lists would show.
    """
    wanted = f"{options[0]} takes mysql://user@host:port/keyspace"
    if url.startswith("jdbc:"):
        raise RequestError(
            f"{wanted}, without jdbc:, and never jdbc:mariadb:, by which Spark's filters find nothing"
        )
    parts = urlsplit(url)
    try:
        port = parts.port or 15306
    except ValueError as error:
        raise RequestError(f"{wanted}: {error}") from error
    keyspace = unquote(parts.path.removeprefix("/"))
    if parts.password is not None:
        raise RequestError(
            f"{wanted}, without a password: {options[1]} names the variable that holds it"
        )
    if parts.scheme != "mysql" or not parts.hostname or not parts.username or not keyspace:
        raise RequestError(wanted)
    if "/" in keyspace or ":" in keyspace:
        raise RequestError(f"{wanted}, without a shard or more: a job reads all shards")
    name, _, ssl_ca = parts.query.partition("=")
    if parts.query and (name != "ssl_ca" or not Path(unquote(ssl_ca)).is_file()):
        raise RequestError(
            f"{wanted}, and nothing after it but ?ssl_ca= with a file that is there"
        )
    user = unquote(parts.username)
    return Endpoint(parts.hostname, port, user, keyspace, password, unquote(ssl_ca), options)


def password(
    option: str, variable: str, wrong: str = "is not set: export it with the password"
) -> str:
    """Return the password in the environment's *variable*, or an empty one if *variable* is empty.

    No option takes the password itself, because process lists show command lines.

    Raises:
        RequestError: the variable that *option* named is not set; the text ends in *wrong*.
    """
    if variable and variable not in os.environ:
        raise RequestError(f"{option}: {variable} {wrong}")
    return os.environ[variable] if variable else ""


def url_of(endpoint: Endpoint) -> str:
    """Return *endpoint* as a URL for `parse_endpoint`, without its password."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    more = f"?ssl_ca={quote(endpoint.ssl_ca)}" if endpoint.ssl_ca else ""
    user, keyspace = quote(endpoint.user, safe=""), quote(endpoint.keyspace, safe="")
    return f"mysql://{user}@{host}:{endpoint.port}/{keyspace}{more}"


def quoted(name: str) -> str:
    """Return *name* as an SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def marked(name: str) -> str:
    """Return *name* as an SQL identifier for a statement with `%s` placeholders."""
    return quoted(name).replace("%", "%%")


def text_of(value: Any) -> str:
    """Return a value that a server sent as text, though some servers mark it as binary."""
    return value.decode() if isinstance(value, bytes) else str(value)


def ask(connection: Any, sql: str, values: "Sequence[Any]" = ()) -> list[tuple[Any, ...]]:
    """Run a statement; return its rows, undecoded."""
    with connection.cursor() as cursor:
        cursor.execute(sql, tuple(values) or None)
        return list(cursor.fetchall())


def changed(connection: Any, sql: str, values: "Sequence[Any]") -> int:
    """Run an idempotent statement, again if it loses a lock; return how many rows it changed."""
    for tried in count(1):
        try:
            with connection.cursor() as cursor:
                return int(cursor.execute(sql, values))
        except pymysql.err.OperationalError as error:
            if error.args[0] not in _LOST_LOCKS or tried == _LOCK_TRIES:
                raise
    raise AssertionError("the last try ends it")


def shards_of(endpoint: Endpoint) -> list[str]:
    """Return the names of the keyspace's shards, in order.

    Raises:
        RequestError: it is not a keyspace but another database of the proxy.
    """
    told = [text_of(row[0]).rpartition("/") for row in endpoint.ask("SHOW VITESS_SHARDS")]
    found = [shard for keyspace, _, shard in told if keyspace == endpoint.keyspace]
    if not found:
        known = sorted({keyspace for keyspace, _, _ in told})
        raise RequestError(
            f"{endpoint.keyspace!r} is no keyspace with message tables; there are {', '.join(known)}"
        )
    return found


def clock_of(endpoint: Endpoint, shard: str) -> int:
    """Return the current time of a shard's server in nanoseconds since the epoch, with microsecond precision."""
    return int(endpoint.ask(f"SELECT {NOW_US}", shard=shard)[0][0]) * 1000
