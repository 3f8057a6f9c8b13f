"""The configuration: one TOML file, read once, checked once, frozen.

`load` gives a `Config` that needs no further checks, or a `ConfigError` that names the key's full
path and what was expected. The environment is given to it: the command line reads it. Durations
are seconds and may have a fraction; relative paths start at the file's folder.

All faults are found at once by a reader that stops at its first one (`read_whole`): it runs again without the key that it refused,
until it refuses nothing new. Where that key is required, the table around it is left out as well.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

from streamfrom.proxy.config.dsn import socket_path
from streamfrom.proxy.config.fleet_members import FleetConfig, fleet_from, read_address
from streamfrom.proxy.config.keyspaces import (
    KeyspaceConfig as KeyspaceConfig,
    ShardConfig as ShardConfig,
    keyspaces_from,
    refuse_walls,
)
from streamfrom.proxy.config.toml_values import (
    DROPPED,
    REQUIRED,
    VARIABLE,
    ConfigError as ConfigError,
    Secret as Secret,
    Surroundings,
    TomlTable,
    reason,
    shown,
)
from streamfrom.proxy.passwords.verifier import Verifier


LISTEN_DEFAULT: Final = "127.0.0.1:15306"
ADMIN_LISTEN_DEFAULT: Final = "127.0.0.1:15380"
# As the examples of Vitess have it.
GRPC_LISTEN_DEFAULT: Final = "127.0.0.1:15991"
# Both servers' own sockets are open to any user of the machine: the login decides who may do what.
UNIX_SOCKET_MODE_DEFAULT: Final = 0o777
PACKET_BYTES_MAX: Final = 1 << 30  # what MySQL itself accepts for max_allowed_packet


class TransactionMode(StrEnum):
    """What a transaction that touches several shards does."""

    MULTI = "multi"  # commits shard by shard; a partial commit is reported as such
    SINGLE = "single"  # is refused
    TWOPC = "twopc"  # commits in two phases: everywhere or nowhere


class Role(StrEnum):
    """What a user may do in the proxy itself; the servers' grants say the rest."""

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
    require: bool  # refuse clients that do not ask for TLS
    # The authorities that must have signed the certificate of a client that speaks TLS; None asks for no certificate.
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
    # What one connection may make the proxy hold: commands that are not whole or wait, long data, prepared statements,
    # answers that it does not read.
    connection_memory_bytes: int
    user_memory_bytes: int  # what all connections of one user together may make the proxy hold
    # What one merge may hold of groups that are sorted at its end, of what DISTINCT has met, of
    # expressions that are computed at its end, and of the rows of RETURNING.
    merge_memory_bytes: int
    failover_buffer_s: float  # how long a statement waits for a backend that restarts
    stream_grace_s: float  # how long a stream survives without its backend
    shutdown_grace_s: float  # how long a shutdown lets statements, transactions and acks go on
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
    # The permissions of the socket's file, as of chmod(2).
    unix_socket_mode: int = UNIX_SOCKET_MODE_DEFAULT
    # What a statement may have in addition to the literals of rows and IN lists.
    max_statement_tokens: int = 200_000


@dataclass(frozen=True, slots=True)
class User:
    """One account; exactly one of password and password_hash is set."""

    name: str
    password: Secret | None
    # What `proxy.passwords.verifier.Verifier.from_hash` takes: "*" and 40 hexadecimal digits, or MySQL's stored form
    # "$A$005$…", or that in hexadecimal, as SHOW CREATE USER can print it (a salt may hold characters that no file
    # should).
    password_hash: Secret | None
    role: Role = Role.USER
    # Logins beyond this are refused with error 1226; None is no limit of its own.
    max_connections: int | None = None
    host: str = "%"  # from where the user may log in, as CURRENT_USER() returns it
    # What the user's sessions log in with at the servers; own only together with a password.
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
    """What the log of a proxy is like."""

    level: LogLevel = LogLevel.INFO
    format: LogFormat = LogFormat.AUTO


@dataclass(frozen=True, slots=True)
class Config:
    """A whole configuration. Without users, root may log in from this machine, with no password."""

    server: Server
    users: tuple[User, ...]
    keyspaces: tuple[KeyspaceConfig, ...]
    fleet: FleetConfig = field(default_factory=FleetConfig)
    admin: tuple[str, int] | None = None  # where metrics and health are served; None: nowhere
    log: LogSettings = field(default_factory=LogSettings)
    grpc: tuple[str, int] | None = None  # where Vitess's message API is served; None: nowhere

    @property
    def accounts(self) -> tuple[User, ...]:
        """The users that may log in: those of the file, or root where it names none."""
        return self.users or (User("root", Secret(""), None, host="localhost"),)


def load(path: Path, environ: Mapping[str, str]) -> Config:
    """Read and check the file at *path*; `${NAME}` is taken from *environ*.

    Raises ConfigError if it, a file that it names or a value in it cannot be used: of the first fault, with all others in `others`.
    """
    path = path.absolute()
    document = _document(path)
    around = Surroundings(path.parent, environ)
    return read_whole(document, lambda whole: _config(TomlTable(whole, "", around)))


def _config(root: TomlTable) -> Config:
    server = _server(root.table("server"))
    keyspaces = keyspaces_from(root.table("keyspaces"))
    users = _users(root.tables("users"))
    fleet = fleet_from(root.table("fleet"))
    admin = _listener(root.table("admin"), ADMIN_LISTEN_DEFAULT) if "admin" in root else None
    grpc = _listener(root.table("grpc"), GRPC_LISTEN_DEFAULT) if "grpc" in root else None
    log = _log(root.table("log"))
    root.close()
    return Config(server, users, keyspaces, fleet, admin, log, grpc)


def _listener(table: TomlTable, default: str) -> tuple[str, int]:
    address = _listen(table, default)
    table.close()
    return address


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
        unix_socket = socket_path(unix_socket, table.key("unix_socket"), table.around)
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
        tls=_tls(table.table("tls")) if "tls" in table else None,
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
    address = read_address(text)
    if address is None:
        raise table.fault("listen", f'expected {expected}, got "{text}"')
    return address


def _mode(table: TomlTable) -> int:
    expected = 'permissions in octal such as "0770"'
    text = table.string(
        "unix_socket_mode", f"{UNIX_SOCKET_MODE_DEFAULT:04o}", expected=expected
    )
    if re.fullmatch("0?[0-7]{3}", text) is None:
        raise table.fault("unix_socket_mode", f"expected {expected}, got {shown(text)}")
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


def _users(tables: list[TomlTable]) -> tuple[User, ...]:
    users: dict[str, User] = {}
    for table in tables:
        user = _user(table)
        if user.name in users:
            raise table.fault("name", f'expected each user once, got "{user.name}" again')
        users[user.name] = user
    return tuple(users.values())


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
        most = table.integer("max_connections", REQUIRED, least=1)
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


T = TypeVar("T")
KeyPath = tuple[str | int, ...]

_PART: Final = re.compile(r'\.?([A-Za-z0-9_-]+)|\.?("(?:[^"\\]|\\.)*")|\[([0-9]+)\]')
# What the error calls a named item of each array.
_ITEMS: Final = {"users": "user", "shards": "shard"}


def read_whole(document: dict[str, object], read: Callable[[dict[str, object]], T]) -> T:
    """Return what *read* makes of *document*.

    Raises ConfigError for the first fault, with the others in `others`; *document* has lost what they are about.
    """
    faults: list[ConfigError] = []
    names: dict[KeyPath, str] = {}
    dropped: set[KeyPath] = set()
    # The rounds end: each of them leaves at least one key fewer.
    while True:
        try:
            made = read(document)
        except ConfigError as fault:
            path = _path(fault.key)
            names = names or _names(document)
            if not _is_consequence(path, dropped):
                faults.append(_named(fault, path, names))
            if not _drop(document, path, dropped):
                break
        else:
            if not faults:
                return made
            break
    first, *others = faults
    first.others = tuple(others)
    raise first


def _path(key: str) -> KeyPath:
    """Return the parts of a key's full path, as far as it is one."""
    parts: list[str | int] = []
    at = 0
    while found := _PART.match(key, at):
        at = found.end()
        bare, quoted, index = found.groups()
        parts.append(bare or (json.loads(quoted) if quoted else int(index)))
    return tuple(parts)


def _names(document: Mapping[str, object]) -> dict[KeyPath, str]:
    """Return what the users and shards of *document* are called, by their paths."""
    found: dict[KeyPath, str] = {}
    pending: list[tuple[KeyPath, object]] = [((), document)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, dict):
            pending += [((*path, key), inner) for key, inner in value.items()]
            name = value.get("name")
            if len(path) > 1 and path[-2] in _ITEMS and isinstance(name, str):
                found[path] = f'{_ITEMS[str(path[-2])]} "{name}"'
        elif isinstance(value, list):
            pending += [((*path, index), inner) for index, inner in enumerate(value)]
    return found


def _named(fault: ConfigError, path: KeyPath, names: Mapping[KeyPath, str]) -> ConfigError:
    """Return *fault* with the name of its user or shard, as `users[3]` says nothing to an operator."""
    for size in range(len(path), 0, -1):
        name = names.get(path[:size])
        if name is not None and path[size:] != ("name",):
            return ConfigError(fault.key, f"{fault.problem} ({name})")
    return fault


def _is_consequence(path: KeyPath, dropped: set[KeyPath]) -> bool:
    """True for a fault that was not there before something was dropped."""
    size = len(path)
    # A table whose required key was left out is refused for lacking it.
    if path in dropped or any(
        each[:size] == path and len(each) == size + 1 for each in dropped
    ):
        return True
    # How many shards there may be, and their names, follow from the vschema and from each other.
    if "shards" not in path:
        return False
    at = path.index("shards") + 1
    is_of_all = path[at:] == () or path[at + 1 :] == ("name",)
    return is_of_all and (
        (*path[: at - 1], "vschema") in dropped
        or any(each[:at] == path[:at] and len(each) == at + 1 for each in dropped)
    )


def _drop(document: dict[str, object], path: KeyPath, dropped: set[KeyPath]) -> bool:
    """Take what *path* leads to out of *document*, or what is around it; False at the top."""
    while path:
        holder: object = document
        for part in path[:-1]:
            if isinstance(holder, dict):
                holder = holder.get(str(part))
            elif isinstance(holder, list) and isinstance(part, int) and part < len(holder):
                holder = holder[part]
        last = path[-1]
        if isinstance(holder, dict) and last in holder:
            del holder[str(last)]
            dropped.add(path)
            return True
        if isinstance(holder, list) and isinstance(last, int) and path not in dropped:
            holder[last] = DROPPED  # the others keep their index
            dropped.add(path)
            return True
        path = path[:-1]
    return False
