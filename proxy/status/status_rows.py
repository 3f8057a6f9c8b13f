"""The tables of the schema `streamfrom`, as columns and rows, made from figures. Pure.

Times are ages in seconds, which can be compared without a clock or a time zone. An unknown figure is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from streamfrom.proxy.status.queue_figures import FIGURES, Figure, QueueLook, Unit
from streamfrom.sqlparse_ext.statements import Kind, Shape, Uses
from streamfrom.sqlparse_ext.text.tokens import statement_tokens, unquote


if TYPE_CHECKING:
    from streamfrom.engine.errors import TableLoadError
    from streamfrom.engine.messaging.figures.figures import (
        QueueFigures,
        StreamFigures,
    )
    from streamfrom.proxy.local_statements.show_processlist import Process

StatusValue: TypeAlias = str | int | float | None
StatusRow: TypeAlias = tuple[StatusValue, ...]

# The length of `SqlType.TEXT`; JSON_TABLE would turn longer texts into NULL.
TEXT_MAX: Final = 4096

SCHEMA: Final = "streamfrom"
QUEUE_STATUS: Final = ("QUEUE", "STATUS")
_DATABASE: Final = frozenset({"DATABASE", "SCHEMA"})
_OF_SCHEMA: Final = frozenset({"FROM", "IN"})
_SHOWS_TABLES: Final = frozenset({("TABLES",), ("FULL", "TABLES")})


def is_status(shape: Shape, schema: str | None) -> bool:
    """Return whether these tables answer a statement. *schema*: the session's target if it is not a keyspace."""
    if shape.kind is Kind.SHOW:
        if shape.words[:2] == QUEUE_STATUS:
            return True
        count = 2 if shape.words[:1] == ("FULL",) else 1
        return shape.words[:count] in _SHOWS_TABLES and is_own_schema(shape.target or schema)
    if shape.kind is not Kind.SELECT:
        return False
    return any(is_own_schema(table.schema or schema) for table in shape.tables)


def names_schema(shape: Shape) -> bool:
    """Return whether a statement that these tables do not answer names their schema.

    The database of that name on the servers belongs to the proxies and is closed to clients.
    """
    template = shape.template
    if b"streamfrom" not in template.lower() or is_status(shape, None):
        return False
    if shape.kind is Kind.SELECT and not shape.uses & Uses.UNPARSED:
        return False  # its tables are known: see `is_status`
    tokens = statement_tokens(template)
    keys = [token.key for token in tokens]
    is_show, is_of_databases = shape.kind is Kind.SHOW, keys[1] in _DATABASE
    return any(
        is_of_databases or after == "." or (is_show and before in _OF_SCHEMA)
        for token, before, after in zip(tokens, ["", *keys], [*keys[1:], ""], strict=False)
        if token.is_name and is_own_schema(unquote(token, template))
    )


def is_own_schema(schema: str | None) -> bool:
    """Return whether *name* is that of the schema; case does not count, as with `information_schema`."""
    return schema is not None and schema.lower() == SCHEMA


class SqlType(StrEnum):
    """The SQL type of a column."""

    NAME = "VARCHAR(255) CHARACTER SET utf8mb4"
    TEXT = "VARCHAR(4096) CHARACTER SET utf8mb4"
    COUNT = "BIGINT"
    DOUBLE = "DOUBLE"


Read: TypeAlias = "Callable[[Any, int], StatusValue]"


class StatusColumn(NamedTuple):
    """A column of a table. read: computes its value from a record, at a time in nanoseconds."""

    name: str
    type: SqlType
    read: Read


def _columns(**columns: SqlType | tuple[SqlType, Read]) -> tuple[StatusColumn, ...]:
    """Return columns by name. A column given only by its type shows the attribute of that name, None if there is none."""
    return tuple(
        StatusColumn(name, column, _attribute(name))
        if isinstance(column, SqlType)
        else StatusColumn(name, *column)
        for name, column in columns.items()
    )


def _attribute(name: str) -> Read:
    return lambda record, _: _shown(getattr(record, name, None))


def _client(name: str) -> Read:
    return lambda stream, _: _shown(getattr(stream.client, name))


def _age_s(name: str) -> Read:
    def read(record: Any, now_ns: int) -> float | None:
        since_ns = getattr(record, name)
        # The wall clock may have been set back since.
        return None if since_ns is None else max(0, now_ns - since_ns) / 10**9

    return read


def _figure(figure: Figure) -> tuple[SqlType, Read]:
    kind = _DOUBLE if figure.unit in {Unit.SECONDS, Unit.RATE} else _COUNT
    return kind, lambda look, _: figure.read(look)


def _shown(value: Any) -> StatusValue:
    if isinstance(value, tuple):
        value = ",".join(value)
    if isinstance(value, str):
        return value if len(value) <= TEXT_MAX else f"{value[: TEXT_MAX - 1]}…"
    if isinstance(value, float):
        return round(value, 3)
    return int(value) if isinstance(value, bool) else value


_NAME, _TEXT, _COUNT, _DOUBLE = SqlType

QUEUES: Final = _columns(
    keyspace=_NAME,
    queue=_NAME,
    **{figure.name: _figure(figure) for figure in FIGURES},
    error=_TEXT,
    unanswered=(_TEXT, lambda look, _: _shown("; ".join(look.figures.unanswered)) or None),
)
STREAMS: Final = _columns(
    connection_id=_COUNT,
    user=(_NAME, _client("user")),
    host=(_NAME, _client("host")),
    keyspace=_NAME,
    queue=_NAME,
    shards=(_TEXT, _client("shards")),
    open_s=(_DOUBLE, lambda stream, now_ns: _age_s("opened_ns")(stream.client, now_ns)),
    prefetch=(_COUNT, _client("prefetch")),
    delivered=_COUNT,
    unacked=_COUNT,
    oldest_unacked_age_s=(_DOUBLE, _age_s("oldest_unacked_ns")),
    stalled_s=(_DOUBLE, _age_s("stalled_since_ns")),
    member=(_NAME, _client("member")),
)
SHARDS: Final = _columns(
    keyspace=_NAME,
    shard=_NAME,
    server=_NAME,
    version=_NAME,
    is_up=_COUNT,
    last_error=_TEXT,
    pool_size=_COUNT,
    pool_open=_COUNT,
    pool_in_use=_COUNT,
    pool_waiters=_COUNT,
    is_dispatched=_COUNT,
    member=_NAME,
)
MEMBERS: Final = _columns(
    member=_NAME,
    version=_NAME,
    uptime_s=_DOUBLE,
    connections=_COUNT,
    streams=_COUNT,
    questions=_COUNT,
    is_stopping=_COUNT,
    address=(_NAME, lambda member, _: member.address or None),
    dispatches=_TEXT,
    is_answering=_COUNT,
    clock_unix_s=_DOUBLE,
    certificate_expires_in_s=_DOUBLE,
    error=_TEXT,
)
SET_ASIDE: Final = _columns(
    keyspace=_NAME,
    queue=_NAME,
    shard=_NAME,
    id=_TEXT,
    tried=_NAME,
    error=_TEXT,
    since_s=(_DOUBLE, _age_s("since_ns")),
    next_try_s=(_DOUBLE, lambda row, now_ns: max(0, row.next_ns - now_ns) / 10**9),
    tries=_COUNT,
)
# By name: SHOW TABLES lists them in this order.
TABLES: Final[Mapping[str, tuple[StatusColumn, ...]]] = {
    "members": MEMBERS,
    "queues": QUEUES,
    "set_aside": SET_ASIDE,
    "shards": SHARDS,
    "streams": STREAMS,
}


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """One shard's primary as a process sees it."""

    keyspace: str
    shard: str
    server: str
    version: str
    last_error: str | None  # why it is not available; None while it is
    pool_size: int
    pool_open: int
    pool_in_use: int
    pool_waiters: int
    is_dispatched: bool = True  # whether this process delivers the messages of the shard
    member: str | None = None  # the id of the process

    @property
    def is_up(self) -> bool:
        """Return whether the primary is available."""
        return self.last_error is None


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """One process."""

    member: str | None  # its id in its fleet; None for a process alone
    version: str
    uptime_s: float
    connections: int
    streams: int
    questions: int
    is_stopping: bool
    connections_max: int = 0  # how many clients may be connected
    # When its certificate for clients expires, as Unix time; None without one.
    certificate_expires_s: float | None = None
    address: str = ""  # where other members reach it, host:port; empty if they cannot
    dispatches: tuple[str, ...] = ()  # the shards whose messages it delivers, as keyspace/shard
    # Its clock, as Unix time; None if not reported.
    clock_unix_s: float | None = None
    is_answering = True

    @property
    def certificate_expires_in_s(self) -> float | None:
        """Return the seconds until its certificate expires, by its own clock."""
        if self.clock_unix_s is None or self.certificate_expires_s is None:
            return None
        return self.certificate_expires_s - self.clock_unix_s


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A member that exists but reports nothing. error: why."""

    member: str
    version: str
    address: str
    error: str
    is_answering = False

    def __str__(self) -> str:
        """Return the member's id and the error."""
        place = f" at {self.address}" if self.address else ""
        return f"member {self.member}{place}: {self.error}"


@dataclass(frozen=True, slots=True)
class StreamClient:
    """The client of a stream."""

    user: str
    host: str
    opened_ns: int
    prefetch: int
    shards: str | None  # the shards that the stream is restricted to, with commas; None for all
    member: str | None = None  # the process that the client is connected to


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """The state of a stream as a process knows it."""

    connection_id: int
    keyspace: str
    queue: str
    # None for a stream that this process dispatches to if the client is another process's.
    client: StreamClient | None
    delivered: int
    unacked: int
    # As in `StreamFigures`.
    oldest_unacked_ns: int | None
    stalled_since_ns: int | None
    window: int = 0


def queue_rows(
    queues: Iterable[QueueFigures], errors: Iterable[tuple[str, TableLoadError]], now_ns: int
) -> list[StatusRow]:
    """Return the rows of `QUEUES`; *errors* are the tables that cannot be used, with their keyspaces."""
    rows = rows_of("queues", (QueueLook(queue, now_ns) for queue in queues), now_ns)
    # Between keyspace and queue, which come first, and error and unanswered, which come last.
    blanks: StatusRow = (None,) * len(FIGURES)
    rows += [(keyspace, error.table, *blanks, error.reason, None) for keyspace, error in errors]
    return sorted(rows, key=lambda row: (str(row[0]), str(row[1])))


def rows_of(table: str, records: Iterable[Any], now_ns: int) -> list[StatusRow]:
    """Return the rows of one of `TABLES` made from *records*; the records of `queues` are `QueueLook`s."""
    columns = TABLES[table]
    return [tuple(column.read(record, now_ns) for column in columns) for record in records]


def stream_status(
    streams: Iterable[StreamFigures], processes: Iterable[Process], member: str | None
) -> list[StreamStatus]:
    """Return the streams of *processes* and of other members' clients, as process *member* knows them."""
    clients = {process.connection_id: process for process in processes}
    return [
        StreamStatus(
            stream.connection_id,
            stream.table.keyspace,
            stream.table.name,
            None
            if process is None
            else StreamClient(
                process.user,
                process.host,
                stream.opened_ns,
                stream.prefetch,
                None if stream.shards is None else ",".join(sorted(stream.shards)),
                member,
            ),
            stream.delivered,
            stream.unacked,
            stream.oldest_unacked_ns,
            stream.stalled_since_ns,
            stream.window,
        )
        for stream in streams
        if (process := clients.get(stream.connection_id)) is not None or stream.is_for_member
    ]
