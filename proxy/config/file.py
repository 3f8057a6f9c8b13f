"""The configuration: one TOML file, read once, checked once, frozen.

`load` returns a `Config` that needs no further checks, or raises a `ConfigError` that names the key's full
path and the expected value. The environment is passed in: the command line reads it. Durations
are seconds and may have a fraction; relative paths start at the file's folder.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from streamfrom.proxy.config.dsn import socket_path
from streamfrom.proxy.config.fleet_members import FleetConfig, fleet_from, read_address
from streamfrom.proxy.config.keyspaces import (
    KeyspaceConfig as KeyspaceConfig,
    ShardConfig as ShardConfig,
    keyspaces_from,
    refuse_walls,
)
from streamfrom.proxy.config.toml_values import (
    REQUIRED,
    VARIABLE,
    ConfigError as ConfigError,
    Secret as Secret,
    Surroundings,
    TomlTable,
    joined,
    reason,
    shown,
)
from streamfrom.proxy.passwords.verifier import Verifier


LISTEN_DEFAULT: Final = "127.0.0.1:15306"
ADMIN_LISTEN_DEFAULT: Final = "127.0.0.1:15380"
# As in Vitess's examples.
GRPC_LISTEN_DEFAULT: Final = "127.0.0.1:15991"
# Both servers' own sockets are open to any user of the machine: the login decides on access.
UNIX_SOCKET_MODE_DEFAULT: Final = 0o777
PACKET_BYTES_MAX: Final = 1 << 30  # MySQL's own limit for max_allowed_packet


class TransactionMode(StrEnum):
    """The handling of a transaction that touches several shards."""

    MULTI = "multi"  # commits shard by shard; a partial commit is reported as such
    SINGLE = "single"  # is refused
    TWOPC = "twopc"  # commits in two phases: everywhere or nowhere


class Role(StrEnum):
    """A user's rights in the proxy itself; the servers' grants decide everything else."""

    USER = "user"
    ADMIN = "admin"  # it may see and end the sessions of others, too


class SessionAccount(StrEnum):
    """The account of the servers that a user's sessions log in with."""

    OWN = "own"  # the user's name and password, so that the servers' grants apply
    SHARED = "shared"  # that of each shard's address


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The proxy's own certificate, as absolute paths that were readable when checked."""

    cert: str
    key: str
    require: bool  # refuse clients that do not use TLS
    # The authorities that must have signed the certificate of a client that uses TLS; None requires no certificate.
    client_ca: str | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """The listening side and its limits."""

    host: str
    port: int  # 0 means any free port
    unix_socket: str | None
    # Clients beyond this are refused with error 1040; one more may be an admin.
    max_connections: int
    # Clients of one address beyond this are refused with error 1040; 0 is no limit.
    max_connections_per_address: int
    max_logins_per_address: int  # how many connections of one address may be without a login
    connect_timeout_s: float  # time to finish the handshake
    max_allowed_packet_bytes: int  # the largest packet taken from a client
    tls: TlsSettings | None
    # The memory that one connection may use: incomplete or waiting commands, long data, prepared statements,
    # answers that it does not read.
    connection_memory_bytes: int
    user_memory_bytes: int  # the memory that all connections of one user may use together
    # The memory of one merge for groups that are sorted at its end, for the values of DISTINCT, for
    # expressions that are computed at its end, and for the rows of RETURNING.
    merge_memory_bytes: int
    failover_buffer_s: float  # how long a statement waits for a backend that restarts
    stream_grace_s: float  # how long a stream survives without its backend
    shutdown_grace_s: (
        float  # how long a shutdown lets statements, transactions and acks continue
    )
    schema_reload_s: float  # how often message tables are looked for
    pool_timeout_s: float  # how long a statement waits for a free backend connection
    transaction_mode: TransactionMode
    # How long a prepared transaction is left to the proxy that commits it.
    recovery_grace_s: float
    statement_timeout_s: float  # how long a statement other than STREAM may run; 0 is any time
    idle_timeout_s: float  # how long a client may send no command; 0 is any time
    # The longest delay of an answer to a login after failed ones; 0 is no delay.
    auth_backoff_s: float
    # A replica that is further behind its primary than this is not read from.
    replica_max_lag_s: float = 30.0
    # The permissions of the socket's file, as in chmod(2).
    unix_socket_mode: int = UNIX_SOCKET_MODE_DEFAULT
    # The limit for tokens other than the literals of rows and IN lists.
    max_statement_tokens: int = 200_000


@dataclass(frozen=True, slots=True)
class User:
    """One account; exactly one of password and password_hash is set."""

    name: str
    password: Secret | None
    # The forms of `proxy.passwords.verifier.Verifier.from_hash`: "*" and 40 hexadecimal digits, or MySQL's stored form
    # "$A$005$…", or that in hexadecimal, as SHOW CREATE USER can print it (a salt may hold characters that no file
    # should).
    password_hash: Secret | None
    role: Role = Role.USER
    # Logins beyond this are refused with error 1226; None is no separate limit.
    max_connections: int | None = None
    host: str = "%"  # from where the user may log in, as CURRENT_USER() returns it
    # The account that the user's sessions log in with at the servers; own only together with a password.
    account: SessionAccount = SessionAccount.SHARED


class LogLevel(StrEnum):
    """The least that is logged, by the names of the standard library's levels."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """How a line looks."""

    AUTO = "auto"  # TEXT on a terminal, JSON when piped
    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The format and level of a proxy's log."""

    level: LogLevel = LogLevel.INFO
    format: LogFormat = LogFormat.AUTO


@dataclass(frozen=True, slots=True)
class Config:
    """A whole configuration. Without users, root may log in from this machine, with no password."""

    server: Server
    users: tuple[User, ...]
    keyspaces: tuple[KeyspaceConfig, ...]
    fleet: FleetConfig = field(default_factory=FleetConfig)
    admin: tuple[str, int] | None = None  # the address of metrics and health; None: not served
    log: LogSettings = field(default_factory=LogSettings)
    grpc: tuple[str, int] | None = None  # the address of Vitess's message API; None: not served

    @property
    def accounts(self) -> tuple[User, ...]:
        """The users that may log in: those of the file, or root if it names none."""
        return self.users or (User("root", Secret(""), None, host="localhost"),)


def load(path: Path, environ: Mapping[str, str]) -> Config:
    """Read and check the file at *path*; `${NAME}` is taken from *environ*.

    Raises ConfigError if it, a file that it names or a value in it cannot be used: the first fault, with all others in `others`.
    """
    path = path.absolute()
    document = _document(path)
    faults: list[ConfigError] = []
    config = _config(TomlTable(document, "", Surroundings(path.parent, environ), faults))
    if faults:
        raise joined(faults)
    return config


def _config(root: TomlTable) -> Config:
    server = root.table("server", _server)
    keyspaces = root.table("keyspaces", keyspaces_from)
    users = _users(root)
    fleet = root.table("fleet", fleet_from)
    admin = _listener(root, "admin", ADMIN_LISTEN_DEFAULT)
    grpc = _listener(root, "grpc", GRPC_LISTEN_DEFAULT)
    log = root.table("log", _log)
    root.close()
    return Config(server, users, keyspaces, fleet, admin, log, grpc)


def _listener(root: TomlTable, name: str, default: str) -> tuple[str, int] | None:
    def read(table: TomlTable) -> tuple[str, int]:
        address = _listen(table, default)
        table.close()
        return address

    return root.table(name, read) if name in root else None


def _document(path: Path) -> dict[str, object]:
    try:
        # Windows begins a text with a byte order mark.
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError("", f"cannot read {path}: {reason(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError("", f"expected UTF-8, got another byte at {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError("", f"not valid TOML: {error}") from None


def _server(table: TomlTable) -> Server:
    host, port = _listen(table)
    unix_socket = table.string("unix_socket", "", expected="a path")
    packet_bytes = table.integer(
        "max_allowed_packet", 64 << 20, least=1024, most=PACKET_BYTES_MAX
    )
    # One packet must fit, and by default a second one next to it.
    connection_bytes = table.integer(
        "connection_memory", max(128 << 20, 2 * packet_bytes), least=packet_bytes
    )
    max_connections = table.integer("max_connections", 10_000, least=1)
    if unix_socket:
        where = unix_socket, table.key("unix_socket"), table.around
        unix_socket = table.attempt(lambda: socket_path(*where))
    server = Server(
        host=host,
        port=port,
        unix_socket=unix_socket or None,
        unix_socket_mode=_mode(table),
        max_connections=max_connections,
        max_connections_per_address=table.integer("max_connections_per_address", 0, least=0),
        max_logins_per_address=table.integer(
            "max_logins_per_address", (max_connections + 1) // 2, least=1
        ),
        connect_timeout_s=table.seconds("connect_timeout", 10),
        max_allowed_packet_bytes=packet_bytes,
        connection_memory_bytes=connection_bytes,
        user_memory_bytes=table.integer(
            "user_memory", 4 * connection_bytes, least=connection_bytes
        ),
        tls=table.table("tls", _tls) if "tls" in table else None,
        max_statement_tokens=table.integer("max_statement_tokens", 200_000, least=1000),
        merge_memory_bytes=table.integer("merge_memory", 64 << 20, least=1024),
        failover_buffer_s=table.seconds("failover_buffer", 10, zero=True),
        stream_grace_s=table.seconds("stream_grace", 30, zero=True),
        shutdown_grace_s=table.seconds("shutdown_grace", 5, zero=True),
        schema_reload_s=table.seconds("schema_reload", 30),
        pool_timeout_s=table.seconds("pool_timeout", 10),
        transaction_mode=table.choice("transaction_mode", TransactionMode.MULTI),
        recovery_grace_s=table.seconds("recovery_grace", 5),
        replica_max_lag_s=table.seconds("replica_max_lag", 30, zero=True),
        statement_timeout_s=table.seconds("statement_timeout", 0, zero=True),
        idle_timeout_s=table.seconds("idle_timeout", 28_800, zero=True),
        auth_backoff_s=table.seconds("auth_backoff", 2, zero=True),
    )
    table.close()
    return server


def _listen(table: TomlTable, default: str = LISTEN_DEFAULT) -> tuple[str, int]:
    expected = 'an address such as "127.0.0.1:15306" or "[::]:15306"'
    text = table.string("listen", default, expected=expected)
    if (address := read_address(text)) is None:
        table.note(table.fault("listen", f'expected {expected}, got "{text}"'))
    return address or ("", 0)


def _mode(table: TomlTable) -> int:
    expected = 'permissions in octal such as "0770"'
    text = table.string(
        "unix_socket_mode", f"{UNIX_SOCKET_MODE_DEFAULT:04o}", expected=expected
    )
    if re.fullmatch("0?[0-7]{3}", text) is None:
        text = table.refused("unix_socket_mode", f"expected {expected}, got {shown(text)}", "0")
    return int(text, 8)


def _tls(table: TomlTable) -> TlsSettings:
    cert = table.string("cert", REQUIRED, expected="a path")
    key = table.string("key", REQUIRED, expected="a path")
    ca = table.string("client_ca", "", expected="a path")
    tls = TlsSettings(
        cert=str(table.around.readable_file(cert, table.key("cert"))),
        key=str(table.around.readable_file(key, table.key("key"))),
        require=table.boolean("require", default=False),
        client_ca=str(table.around.readable_file(ca, table.key("client_ca"))) if ca else None,
    )
    table.close()
    return tls


def _log(table: TomlTable) -> LogSettings:
    settings = LogSettings(
        table.choice("level", LogLevel.INFO), table.choice("format", LogFormat.AUTO)
    )
    table.close()
    return settings


def _users(root: TomlTable) -> tuple[User, ...]:
    names: set[str] = set()

    def read(table: TomlTable) -> User:
        user = _user(table)
        if user.name in names:
            raise table.fault("name", f'expected each user once, got "{user.name}" again')
        names.add(user.name)
        return user

    return tuple(root.tables("users", read))


def _user(table: TomlTable) -> User:
    name = table.name("name", expected="a user's name")
    password, password_hash = _credentials(table)
    account = table.choice("account", SessionAccount.OWN)
    if account is SessionAccount.OWN and password is None:
        raise table.fault(
            "password_hash",
            'expected password or password_env, as sessions log in at the shards with it; or account = "shared"',
        )
    refuse_walls(table, name)
    role = table.choice("role", Role.USER)
    most = None
    if "max_connections" in table:
        most = table.integer("max_connections", None, least=1)
    table.close()
    return User(name, password, password_hash, role, most, account=account)


def _credentials(table: TomlTable) -> tuple[Secret | None, Secret | None]:
    ways = ("password", "password_env", "password_hash")
    given = [way for way in ways if way in table]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise ConfigError(table.path, f"expected exactly one of {', '.join(ways)}; got {got}")
    way = given[0]
    key = table.key(way)
    text = table.written(way, REQUIRED, expected="a string", secret=True)
    match way:
        case "password":
            return Secret(table.around.expand(text, key)), None
        case "password_env":
            return Secret(table.around.variable(text, key)), None
        case _:
            return None, Secret(_password_hash(text, key, table.around))


def _password_hash(text: str, key: str, around: Surroundings) -> str:
    # A salt may hold any 7-bit character, `${` included, so only a lone variable is expanded.
    if VARIABLE.fullmatch(text):
        text = around.expand(text, key)
    try:
        Verifier.from_hash(text)
    except ValueError as error:
        raise ConfigError(key, str(error)) from None
    return text
