"""The tables of the schema `streamfrom`, as columns and rows. Pure: figures go in.

Times are given as ages in seconds, which need no clock and no time zone to be compared. A figure that is not known is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from streamfrom.engine.messaging.table.message import AUTO
from streamfrom.sqlparse_ext.statements import Kind, Uses
from streamfrom.sqlparse_ext.text.tokens import statement_tokens, unquote


if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streamfrom.engine.errors import TableLoadError
    from streamfrom.engine.messaging.figures.figures import (
        QueueFigures,
        SetAsideFigures,
        StreamFigures,
    )
    from streamfrom.engine.messaging.table.counters import Histogram
    from streamfrom.proxy.local_statements.show_processlist import Process
    from streamfrom.sqlparse_ext.statements import Shape

StatusValue: TypeAlias = str | int | float | None

SCHEMA: Final = "streamfrom"
QUEUE_STATUS: Final = ("QUEUE", "STATUS")
_DATABASE: Final = frozenset({"DATABASE", "SCHEMA"})
_OF_SCHEMA: Final = frozenset({"FROM", "IN"})
_SHOWS_TABLES: Final = frozenset({("TABLES",), ("FULL", "TABLES")})


def is_status(shape: Shape, schema: str | None) -> bool:
    """Return whether these tables answer a statement. *schema*: the session's target if that is no keyspace."""
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

    The database of that name on the servers is the proxies' own, and no client's.
    """
    template = shape.template
    if b"streamfrom" not in template.lower() or is_status(shape, None):
        return False
    if shape.kind is Kind.SELECT and not shape.uses & Uses.UNPARSED:
        return False  # its tables are known: `is_status`
    tokens = statement_tokens(template)
    keys = [token.key for token in tokens]
    is_show, is_of_databases = shape.kind is Kind.SHOW, keys[1] in _DATABASE
    return any(
        is_of_databases or after == "." or (is_show and before in _OF_SCHEMA)
        for token, before, after in zip(tokens, ["", *keys], [*keys[1:], ""], strict=False)
        if token.is_name and is_own_schema(unquote(token, template))
    )


def is_own_schema(schema: str | None) -> bool:
    """Return whether a name is that of the schema; case does not count, as with `information_schema`."""
    return schema is not None and schema.lower() == SCHEMA


class SqlType(StrEnum):
    """What a column is to a server."""

    NAME = "VARCHAR(255) CHARACTER SET utf8mb4"
    TEXT = "VARCHAR(4096) CHARACTER SET utf8mb4"
    COUNT = "BIGINT"
    DOUBLE = "DOUBLE"


class StatusColumn(NamedTuple):
    """A column of a table."""

    name: str
    type: SqlType


def _columns(**types: SqlType) -> tuple[StatusColumn, ...]:
    return tuple(StatusColumn(name, kind) for name, kind in types.items())


_NAME, _TEXT, _COUNT, _DOUBLE = SqlType

QUEUES: Final = _columns(
    keyspace=_NAME,
    queue=_NAME,
    depth=_COUNT,
    depth_is_exact=_COUNT,
    ready=_COUNT,
    scheduled=_COUNT,
    in_flight=_COUNT,
    oldest_ready_age_s=_DOUBLE,
    streams=_COUNT,
    prefetch=_COUNT,
    delivered=_COUNT,
    redelivered=_COUNT,
    acked=_COUNT,
    deleted=_COUNT,
    returned=_COUNT,
    purged=_COUNT,
    delivery_latency_p50_s=_DOUBLE,
    delivery_latency_p99_s=_DOUBLE,
    ack_latency_p50_s=_DOUBLE,
    ack_latency_p99_s=_DOUBLE,
    is_paused=_COUNT,
    max_rate=_DOUBLE,
    max_in_flight=_COUNT,
    blocked=_COUNT,
    parked=_COUNT,
    dead_lettered=_COUNT,
    parked_total=_COUNT,
    dead_lettered_total=_COUNT,
    partitions_overdue=_COUNT,
    set_aside=_COUNT,
    error=_TEXT,
    unanswered=_TEXT,
)
STREAMS: Final = _columns(
    connection_id=_COUNT,
    user=_NAME,
    host=_NAME,
    keyspace=_NAME,
    queue=_NAME,
    shards=_TEXT,
    open_s=_DOUBLE,
    prefetch=_COUNT,
    delivered=_COUNT,
    unacked=_COUNT,
    oldest_unacked_age_s=_DOUBLE,
    stalled_s=_DOUBLE,
    member=_NAME,
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
    address=_NAME,
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
    since_s=_DOUBLE,
    next_try_s=_DOUBLE,
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

StatusRow: TypeAlias = tuple[StatusValue, ...]

# What `SqlType.TEXT` takes; JSON_TABLE would make NULL of more.
TEXT_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """One shard's primary as a process sees it.

    last_error: why it is not available, None while it is.
    is_dispatched: whether the process sends the messages of the shard.
    member: the id of the process.
    """

    keyspace: str
    shard: str
    server: str
    version: str
    last_error: str | None
    pool_size: int
    pool_open: int
    pool_in_use: int
    pool_waiters: int
    is_dispatched: bool = True
    member: str | None = None


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """One process.

    member: its id in its fleet; None for one that is alone.
    connections_max: how many clients may be connected.
    certificate_expires_s: when its certificate for clients ends, as Unix time; None without one.
    address: where other members reach it, host:port; empty for nowhere.
    dispatches: the shards whose messages it sends, as keyspace/shard.
    clock_unix_s: its clock, as Unix time; None of a member of an older version.
    """

    member: str | None
    version: str
    uptime_s: float
    connections: int
    streams: int
    questions: int
    is_stopping: bool
    connections_max: int = 0
    certificate_expires_s: float | None = None
    address: str = ""
    dispatches: tuple[str, ...] = ()
    clock_unix_s: float | None = None


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A member that is there and reports nothing. error: why."""

    member: str
    version: str
    address: str
    error: str

    def __str__(self) -> str:
        """Return who it is, and why."""
        place = f" at {self.address}" if self.address else ""
        return f"member {self.member}{place}: {self.error}"


@dataclass(frozen=True, slots=True)
class StreamClient:
    """The client of a stream.

    member: the process that it is connected to.
    shards: those that the stream is narrowed to, with commas; None for all.
    """

    user: str
    host: str
    opened_ns: int
    prefetch: int
    shards: str | None
    member: str | None = None


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """What a process knows of a stream.

    client: None of a stream that it dispatches to, and whose client is another process's.
    oldest_unacked_ns, stalled_since_ns, window: as of `StreamFigures`.
    """

    connection_id: int
    keyspace: str
    queue: str
    client: StreamClient | None
    delivered: int
    unacked: int
    oldest_unacked_ns: int | None
    stalled_since_ns: int | None
    window: int = 0


def queue_rows(
    queues: Iterable[QueueFigures], errors: Iterable[tuple[str, TableLoadError]], now_ns: int
) -> list[StatusRow]:
    """Return the rows of `QUEUES`; *errors* are the tables that cannot be used, with their keyspaces."""
    rows = [_queue_row(queue, now_ns) for queue in queues]
    # Between keyspace and queue, which stand first, and error and unanswered, which stand last.
    blanks: StatusRow = (None,) * (len(QUEUES) - 4)
    rows += [(keyspace, error.table, *blanks, error.reason, None) for keyspace, error in errors]
    return sorted(rows, key=lambda row: (str(row[0]), str(row[1])))


def _queue_row(queue: QueueFigures, now_ns: int) -> StatusRow:
    table, counters, shards = queue.table, queue.counters, queue.shards
    properties = table.properties
    depths = [shard.depth for shard in shards]
    is_told = not queue.unknown
    # Memory knows no key of a queue without streams, so it cannot say what is ready.
    is_streamed = is_told and all(shard.streams for shard in shards)
    since_ns = min(
        (s.oldest_ready_ns for s in shards if s.oldest_ready_ns is not None), default=None
    )
    return (
        table.keyspace,
        table.name,
        _sum(depths),
        int(all(shard.is_whole for shard in shards)),
        sum(shard.ready for shard in shards) if is_streamed else None,
        sum(shard.scheduled for shard in shards) if is_streamed else None,
        sum(shard.in_flight for shard in shards) if is_told else None,
        _age_s(since_ns, now_ns) if is_told else None,
        queue.streams,
        None if properties.prefetch == AUTO else properties.prefetch,
        counters.delivered,
        counters.redelivered,
        counters.acked,
        counters.deleted,
        counters.returned,
        counters.purged,
        *_quantiles(counters.delivery_latency),
        *_quantiles(counters.ack_latency),
        int(properties.paused),
        None if properties.max_rate is None else properties.max_rate / 10**6,
        properties.max_in_flight,
        sum(shard.blocked for shard in shards) if is_streamed else None,
        _sum([shard.parked for shard in shards]),
        _sum([shard.dead_lettered for shard in shards]),
        counters.parked,
        counters.dead_lettered,
        sum(shard.partitions_overdue for shard in shards) if is_told else None,
        sum(shard.set_aside for shard in shards) if is_told else None,
        None,
        _text("; ".join(queue.unanswered)) or None,
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    """Return the sum; None if a count is not known."""
    return None if None in counts else sum(count or 0 for count in counts)


def stream_status(
    streams: Iterable[StreamFigures], processes: Iterable[Process], member: str | None
) -> list[StreamStatus]:
    """Return what process *member* knows of the streams of *processes*, and of other members' clients."""
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


def stream_rows(streams: Iterable[StreamStatus], now_ns: int) -> list[StatusRow]:
    """Return the rows of `STREAMS`."""
    return sorted(
        (
            stream.connection_id,
            client.user,
            client.host,
            stream.keyspace,
            stream.queue,
            client.shards,
            _age_s(client.opened_ns, now_ns),
            client.prefetch,
            stream.delivered,
            stream.unacked,
            _age_s(stream.oldest_unacked_ns, now_ns),
            _age_s(stream.stalled_since_ns, now_ns),
            client.member,
        )
        for stream in streams
        if (client := stream.client) is not None
    )


def set_aside_rows(rows: Iterable[SetAsideFigures], now_ns: int) -> list[StatusRow]:
    """Return the rows of `SET_ASIDE`."""
    return sorted(
        (
            row.keyspace,
            row.queue,
            row.shard,
            _text(row.id),
            row.tried,
            _text(row.error),
            _age_s(row.since_ns, now_ns),
            max(0, row.next_ns - now_ns) / 10**9,
            row.tries,
        )
        for row in rows
    )


def shard_rows(shards: Iterable[ShardStatus]) -> list[StatusRow]:
    """Return the rows of `SHARDS`."""
    return [
        (
            shard.keyspace,
            shard.shard,
            shard.server,
            shard.version,
            int(shard.last_error is None),
            shard.last_error,
            shard.pool_size,
            shard.pool_open,
            shard.pool_in_use,
            shard.pool_waiters,
            int(shard.is_dispatched),
            shard.member,
        )
        for shard in sorted(
            shards, key=lambda each: (each.keyspace, each.shard, each.member or "")
        )
    ]


def member_rows(
    members: Iterable[MemberStatus], unanswered: Iterable[Unanswered] = ()
) -> list[StatusRow]:
    """Return the rows of `MEMBERS`: *members*, and those of which only the directory knows."""
    rows: list[StatusRow] = [
        (
            member.member,
            member.version,
            round(member.uptime_s, 3),
            member.connections,
            member.streams,
            member.questions,
            int(member.is_stopping),
            member.address or None,
            _text(",".join(member.dispatches)),
            1,
            member.clock_unix_s,
            None
            if member.clock_unix_s is None or member.certificate_expires_s is None
            else round(member.certificate_expires_s - member.clock_unix_s, 3),
            None,
        )
        for member in members
    ]
    rows += [
        (
            silent.member,
            silent.version,
            *(None,) * 5,
            silent.address or None,
            None,
            0,
            None,
            None,
            _text(silent.error),
        )
        for silent in unanswered
    ]
    return rows


def _text(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


def _age_s(since_ns: int | None, now_ns: int) -> float | None:
    # The wall clock may have been set back since.
    return None if since_ns is None else max(0, now_ns - since_ns) / 10**9


def _quantiles(histogram: Histogram) -> tuple[float | None, float | None]:
    return histogram.quantile_s(0.5), histogram.quantile_s(0.99)
