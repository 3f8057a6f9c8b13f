"""What the status page shows, as JSON's values. Pure: figures go in."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamfrom.proxy.status.status_rows import TABLES, queue_rows


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from streamfrom.engine.errors import TableLoadError
    from streamfrom.engine.messaging.figures.figures import QueueFigures
    from streamfrom.proxy.admin.history import Rates, Series
    from streamfrom.proxy.config.file import Server
    from streamfrom.proxy.status.status_rows import StatusRow

Record: TypeAlias = dict[str, Any]

# What a comment does not say in these words, or the page says elsewhere.
_NO_SETTINGS: Final = frozenset({"warnings", "newest"})

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

    The rates are messages a second; None while they are not known.
    """
    found = list(queues)
    more = {(each.table.keyspace, each.table.name): each for each in found}
    made = records("queues", queue_rows(found, errors, now_ns))
    for record in made:
        queue = more.get((record["keyspace"], record["queue"]))
        known = None if queue is None else rates(queue)
        record |= {
            "in_per_s": known and known.in_per_s,
            "delivered_per_s": known and known.delivered_per_s,
            "out_per_s": known and known.out_per_s,
            "redelivered_per_s": known and known.redelivered_per_s,
        }
    return made


def shard_records(queue: QueueFigures, now_ns: int) -> list[Record]:
    """Return what each shard of a queue holds.

    oldest_ready_age_s: how long the first ready message has waited; None where that is not known.
    Of a shard whose dispatcher does not answer little is.
    """
    return [
        {
            "shard": shard.shard,
            "depth": shard.depth,
            "depth_is_exact": shard.is_whole,
            "parked": shard.parked,
            "ready": shard.ready if is_told and shard.streams else None,
            "in_flight": shard.in_flight if is_told else None,
            "scheduled": shard.scheduled if is_told and shard.streams else None,
            "oldest_ready_age_s": None
            if shard.oldest_ready_ns is None or not is_told
            else max(0, now_ns - shard.oldest_ready_ns) / 10**9,
            "streams": shard.streams,
        }
        for shard in queue.shards
        for is_told in [shard.shard not in queue.unknown]
    ]


def setting_records(queue: QueueFigures) -> list[Record]:
    """Return the settings of a queue by their keys of the comment; times in seconds, None for none."""
    properties = queue.table.properties
    found = []
    for each in fields(properties):
        value = getattr(properties, each.name)
        key = each.name
        if key.endswith("_ns"):
            key = key.removesuffix("_ns")
            value = None if value is None else value / 10**9
        if key not in _NO_SETTINGS:
            found.append({"key": f"vt_{key}", "value": _plain(value)})
    return found


def newer(series: Series, after_s: float) -> Series:
    """Return the end of *series* that is younger than a moment."""
    moments = [moment or 0.0 for moment in series["at_s"]]
    start = bisect_right(moments, after_s)
    return {name: values[start:] for name, values in series.items()}


def _plain(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else value


def limits(server: Server) -> Record:
    """Return the limits in force, by their keys of the configuration: bytes, seconds, counts."""
    return {key: getattr(server, name) for key, name in _LIMITS.items()}
