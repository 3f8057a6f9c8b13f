"""What the status page shows, as JSON's values. Pure: figures go in."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamfrom.engine.messaging.table.message import AUTO
from streamfrom.engine.messaging.table.setting_keys import KEYS
from streamfrom.proxy.admin.history import Rates, Series
from streamfrom.proxy.config.changes import key_of
from streamfrom.proxy.status.queue_figures import FIGURES, QueueLook
from streamfrom.proxy.status.status_rows import TABLES, StatusRow, queue_rows


if TYPE_CHECKING:
    from streamfrom.engine.errors import TableLoadError
    from streamfrom.engine.messaging.figures.figures import QueueFigures
    from streamfrom.proxy.config.file import Server

Record: TypeAlias = dict[str, Any]

# Settings of [server] that an operator runs into.
_LIMITS: Final = (
    "max_connections",
    "max_connections_per_address",
    "max_logins_per_address",
    "max_allowed_packet_bytes",
    "connection_memory_bytes",
    "user_memory_bytes",
    "merge_memory_bytes",
    "statement_timeout_s",
    "idle_timeout_s",
    "pool_timeout_s",
    "failover_buffer_s",
    "stream_grace_s",
    "shutdown_grace_s",
)


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
        record.update(known._asdict() if known else dict.fromkeys(Rates._fields))
    return made


def shard_records(queue: QueueFigures, now_ns: int) -> list[Record]:
    """Return the figures of each shard of a queue."""
    found = []
    for shard in queue.shards:
        unknown = queue.unknown & {shard.shard}
        one = replace(queue, shards=(shard,), unknown=unknown, streams=shard.streams)
        look = QueueLook(one, now_ns)
        figures = {figure.name: figure.read(look) for figure in FIGURES}
        found.append({"shard": shard.shard} | figures)
    return found


def figure_records() -> list[Record]:
    """Return what the page shows of a queue: what it is called, in which unit, and what it means."""
    names = "name", "unit", "label", "help"
    return [{name: getattr(each, name) for name in names} for each in FIGURES if each.label]


def setting_records(queue: QueueFigures) -> list[Record]:
    """Return the settings of a queue by their keys of the comment; times in seconds, None for none."""
    properties = queue.table.properties
    order = "strict" if properties.in_order and properties.key is None else "oldest"
    group, after = properties.groups or (None, None)
    found: Record = {}
    for each in fields(properties):
        value = getattr(properties, each.name)
        if each.name.endswith("_ns"):
            value = None if value is None else value / 10**9
        found[each.name.removesuffix("_ns")] = value
    found |= {
        "ack": "early" if found.pop("acks_early") else "committed",
        "after": after,
        "group": group,
        "lease": "lazy" if properties.lease_delay_ns else "written",
        "max_per_key": found.pop("in_order") if properties.key else None,
        "max_rate": properties.max_rate and properties.max_rate / 10**6,
        "message_cols": properties.message_cols and ", ".join(properties.message_cols),
        "order": "newest" if found.pop("newest") else order,
        "prefetch": "auto" if properties.prefetch == AUTO else properties.prefetch,
        "shard_by": properties.shard_by and "{}({})".format(*properties.shard_by),
    }
    return [
        {"key": f"vt_{key}", "value": value}
        for key, value in found.items()
        if f"vt_{key}" in KEYS
    ]


def newer(series: Series, after_s: float) -> Series:
    """Return the end of *series* that is younger than a moment."""
    moments = [moment or 0.0 for moment in series["at_s"]]
    start = bisect_right(moments, after_s)
    return {name: values[start:] for name, values in series.items()}


def limits(server: Server) -> Record:
    """Return the limits in force, by their keys of the configuration: bytes, seconds, counts."""
    return {key_of(name): getattr(server, name) for name in _LIMITS}
