"""What the status page shows, as JSON's values. Pure: figures go in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamfrom.proxy.status.status_rows import TABLES, queue_rows


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from streamfrom.engine.errors import TableLoadError
    from streamfrom.engine.messaging.figures import QueueFigures
    from streamfrom.proxy.admin.history import Rates
    from streamfrom.proxy.config.file import Server
    from streamfrom.proxy.status.status_rows import StatusRow

Record: TypeAlias = dict[str, Any]

# Settings of [server] that an operator runs into, as the configuration calls them.
_LIMITS: Final = {
    "max_connections": "max_connections",
    "max_connections_per_address": "max_connections_per_address",
    "max_logins_per_address": "max_logins_per_address",
    "max_allowed_packet": "max_allowed_packet_bytes",
    "connection_memory": "connection_memory_bytes",
    "user_memory": "user_memory_bytes",
    "merge_memory": "merge_memory_bytes",
    "statement_timeout": "statement_timeout_s",
    "idle_timeout": "idle_timeout_s",
    "pool_timeout": "pool_timeout_s",
    "failover_buffer": "failover_buffer_s",
    "stream_grace": "stream_grace_s",
    "shutdown_grace": "shutdown_grace_s",
}


def records(table: str, rows: Iterable[StatusRow]) -> list[Record]:
    """Return the rows of a table of the schema `streamfrom`, each by column."""
    names = [column.name for column in TABLES[table]]
    return [dict(zip(names, row, strict=True)) for row in rows]


def queue_records(
    queues: Iterable[QueueFigures],
    errors: Iterable[tuple[str, TableLoadError]],
    rates: Callable[[QueueFigures], Rates | None],
    now_ns: int,
) -> list[Record]:
    """Return a record for each queue: its row, and what only the page shows.

    waiting: keys in memory; None of a queue that nobody streams. paused: nothing is sent.
    The rates are messages a second; None while they are not known.
    """
    found = list(queues)
    more = {(each.table.keyspace, each.table.name): each for each in found}
    made = records("queues", queue_rows(found, errors, now_ns))
    for record in made:
        queue = more.get((record["keyspace"], record["queue"]))
        known = None if queue is None else rates(queue)
        record |= {
            "paused": queue is not None and queue.table.properties.paused,
            "waiting": sum(shard.waiting for shard in queue.shards)
            if queue is not None and queue.streams
            else None,
            "in_per_s": known and known.in_per_s,
            "sent_per_s": known and known.sent_per_s,
            "out_per_s": known and known.out_per_s,
            "retried_per_s": known and known.retried_per_s,
        }
    return made


def limits(server: Server) -> Record:
    """Return the limits in force, by their keys of the configuration: bytes, seconds, counts."""
    return {key: getattr(server, name) for key, name in _LIMITS.items()}
