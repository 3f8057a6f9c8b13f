"""Where the proxy is, and how it is asked.

The one place of the pipeline that opens connections. Everything here asks one shard at a time by
its target (`keyspace:shard`), so that no answer depends on how the proxy merges shards.
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


# What a client of today says, and the driver does not: no packet stands between definitions and rows.
DEPRECATE_EOF: Final = 1 << 24
# A setting for sessions that read or write times: those of type TIMESTAMP are shown in the session's zone, which in summer and winter
# may differ, and from one server to the next.
IN_UTC: Final = "SET time_zone = '+00:00'"
# What a server takes for now, in microseconds since the epoch. UNIX_TIMESTAMP(NOW(6)) asks its zone, which has an hour of
# each autumn twice, and is an hour behind in the second one.
NOW_US: Final = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
# What names the address and the password on the command line; other places have other names for them.
_OPTIONS: Final = ("--proxy", "--password-env")
# A server takes 1E-7 for a DOUBLE.
_ENCODERS: Final = {
    **pymysql.converters.encoders,
    Decimal: lambda value, _=None: format(value, "f"),
}
_LOCK_TRIES: Final = 5
_LOST_LOCKS: Final = frozenset({1205, 1213})  # lock wait timeout, deadlock
_UNREACHABLE: Final = 2003  # the client library's own error: no server listens there


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A keyspace behind a proxy, and the user that logs in.

    ssl_ca: the file that vouches for the proxy's certificate; without one TLS is not asked for.
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
        """Return the rows of one statement, undecoded, by a connection of its own."""
        with self.connect(shard) as connection:
            return ask(connection, sql, values)

    def connect(
        self, shard: str = "", setting: str | None = None, *, streams: bool = False
    ) -> Any:
        """Return an autocommitting connection to the keyspace, or to one *shard* of it.

        setting: a statement that runs first, for the session.
        streams: `spark.fetching` alone reads the rows, so the proxy may pass on a server's answer as it is.

        Raises:
            JobError: the proxy cannot be reached, or refuses the user, keyspace or shard.
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
                conv=_ENCODERS,  # values come as the server sent them
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
    """A connection that takes TLS if it is offered and was not asked for, as the driver does.

    The driver would read all certificates of the system for that each time, 20 ms of processor time, and check none.
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
    """Read `mysql://user@host:port/keyspace`, where `?ssl_ca=FILE` asks for TLS; *options* as for `Endpoint`.

    Raises:
        RequestError: it is anything else; a password in it is refused too, since processes show it.
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
    """Return the password in the environment's *variable*, which *option* named; empty if it named none.

    It is in no option itself, since processes show their command lines.

    Raises:
        RequestError: there is no such variable; the text ends in *wrong*.
    """
    if variable and variable not in os.environ:
        raise RequestError(f"{option}: {variable} {wrong}")
    return os.environ[variable] if variable else ""


def url_of(endpoint: Endpoint) -> str:
    """Return what `parse_endpoint` reads *endpoint* from, without its password."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    more = f"?ssl_ca={quote(endpoint.ssl_ca)}" if endpoint.ssl_ca else ""
    user, keyspace = quote(endpoint.user, safe=""), quote(endpoint.keyspace, safe="")
    return f"mysql://{user}@{host}:{endpoint.port}/{keyspace}{more}"


def quoted(name: str) -> str:
    """Return *name* as an SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def marked(name: str) -> str:
    """Return *name* as an SQL identifier of a statement with marks for values (`%s`)."""
    return quoted(name).replace("%", "%%")


def text_of(value: Any) -> str:
    """Return a value that a server sent as text, which some servers call binary."""
    return value.decode() if isinstance(value, bytes) else str(value)


def ask(connection: Any, sql: str, values: "Sequence[Any]" = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a statement, undecoded."""
    with connection.cursor() as cursor:
        cursor.execute(sql, tuple(values) or None)
        return list(cursor.fetchall())


def changed(connection: Any, sql: str, values: "Sequence[Any]") -> int:
    """Return how many rows a statement changed that may be run again after losing a lock."""
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
        RequestError: it is a database that the proxy has in addition to keyspaces.
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
    """Return what a shard's server takes for now, in nanoseconds since the epoch, to the microsecond."""
    return int(endpoint.ask(f"SELECT {NOW_US}", shard=shard)[0][0]) * 1000
