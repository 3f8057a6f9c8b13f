"""The figures of a queue, one line each. Pure.

This list defines the columns of `streamfrom.queues`, the metrics, and the tables of a terminal and of the status page.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from streamfrom.engine.messaging.table.message import AUTO


if TYPE_CHECKING:
    from streamfrom.engine.messaging.figures.figures import QueueFigures

Number: TypeAlias = int | float | None


class Unit(StrEnum):
    """The unit of a figure. TOTAL: since the start of the processes. SWITCH: 0 or 1. RATE: messages per second."""

    COUNT = "count"
    TOTAL = "total"
    SWITCH = "switch"
    SECONDS = "seconds"
    RATE = "rate"


class QueueLook:
    """A queue at one moment.

    is_known: every member that may dispatch one of its shards has answered.
    is_cached: memory has ids of every shard; False for a queue without streams.
    """

    def __init__(self, queue: QueueFigures, now_ns: int) -> None:
        self.figures = queue
        self.keyspace, self.queue = queue.table.keyspace, queue.table.name
        self.properties = queue.table.properties
        self.counters = queue.counters
        self.is_known = not queue.unknown
        self.is_cached = self.is_known and all(shard.streams for shard in queue.shards)
        self.now_ns = now_ns

    def sum(self, name: str) -> int | None:
        """Return the sum of a figure over all shards; None if one is unknown."""
        counts = [getattr(shard, name) for shard in self.figures.shards]
        return None if None in counts else sum(counts)


class Figure(NamedTuple):
    """A figure of a queue."""

    name: str  # the column's name, and the key in JSON
    unit: Unit
    read: Callable[[QueueLook], Number]
    help: str  # a sentence or two for the metrics and the page
    # The metric's name without `streamfrom_`, a counter if it ends with `_total`; empty for none.
    metric: str = ""
    label: str = ""  # the label on the status page; empty if it is not shown there
    heading: str = ""  # the heading on a terminal; empty if it is not shown there


def _sum(name: str) -> Callable[[QueueLook], Number]:
    return lambda look: look.sum(name)


def _known(name: str) -> Callable[[QueueLook], Number]:
    return lambda look: look.sum(name) if look.is_known else None


def _cached(name: str) -> Callable[[QueueLook], Number]:
    return lambda look: look.sum(name) if look.is_cached else None


def _counted(name: str) -> Callable[[QueueLook], Number]:
    return lambda look: getattr(look.counters, name)


def _quantile(name: str, share: float) -> Callable[[QueueLook], Number]:
    return lambda look: getattr(look.counters, name).quantile_s(share)


def _prefetch(look: QueueLook) -> Number:
    found = look.properties.prefetch
    return None if found == AUTO else found


def _oldest_ready_age_s(look: QueueLook) -> Number:
    moments = [shard.oldest_ready_ns for shard in look.figures.shards]
    since_ns = min((moment for moment in moments if moment is not None), default=None)
    if since_ns is None or not look.is_known:
        return None
    # The wall clock may have been set back since.
    return max(0, look.now_ns - since_ns) / 10**9


def _max_rate(look: QueueLook) -> Number:
    found = look.properties.max_rate
    return None if found is None else found / 10**6


def _is_exact(look: QueueLook) -> Number:
    return int(all(shard.is_whole for shard in look.figures.shards))


# One line each, in the order of the columns.
_COUNT, _TOTAL, _SWITCH, _SECONDS, _RATE = Unit
FIGURES: Final = (
    Figure("depth", _COUNT, _sum("depth"), "Messages that are neither acknowledged nor parked; an estimate if depth_is_exact is 0.", "queue_depth", "Unacked", "unacked"),
    Figure("depth_is_exact", _SWITCH, _is_exact, "Whether the depth is exact.", "queue_depth_is_exact"),
    Figure("ready", _COUNT, _cached("ready"), "Messages that could be delivered now. Not known without a stream.", "queue_ready", "Ready", "ready"),
    Figure("scheduled", _COUNT, _cached("scheduled"), "Messages for later: at their own time, or for another attempt. Not known without a stream.", "queue_scheduled", "Scheduled"),
    Figure("in_flight", _COUNT, _known("in_flight"), "Messages that were delivered, and are neither acknowledged nor ready again.", "queue_in_flight", "In flight", "in flight"),
    Figure("blocked", _COUNT, _cached("blocked"), "Messages that wait until a group of messages is done (vt_after).", "queue_blocked", "Blocked", "blocked"),
    Figure("parked", _COUNT, _sum("parked"), "Not delivered until you requeue them: their attempts are used up, or they were parked by hand. An estimate above 10,000.", "queue_parked", "Failed: parked", "parked"),
    Figure("dead_lettered", _COUNT, _sum("dead_lettered"), "Rows that the table of the dead letters has now.", "queue_dead_lettered", "Failed: dead letters", "dead"),
    Figure("oldest_ready_age_s", _SECONDS, _oldest_ready_age_s, "How long the message has waited that has been ready longest.", "queue_oldest_message_age_seconds", "Oldest ready", "oldest"),
    Figure("streams", _COUNT, lambda look: look.figures.streams, "Open streams.", "queue_streams", "Streams", "streams"),
    Figure("prefetch", _COUNT, _prefetch, "The table's vt_prefetch; none for auto."),
    Figure("delivered", _TOTAL, _counted("delivered"), "Messages delivered to streams.", "messages_delivered_total", "Delivered", "delivered"),
    Figure("redelivered", _TOTAL, _counted("redelivered"), "Messages delivered that had been delivered before.", "messages_redelivered_total", "Redelivered", "redelivered"),
    Figure("acked", _TOTAL, _counted("acked"), "Messages acknowledged by UPDATE.", "messages_acked_total", "Acked", "acked"),
    Figure("deleted", _TOTAL, _counted("deleted"), "Messages deleted by clients.", "messages_deleted_total", "Deleted"),
    Figure("returned", _TOTAL, _counted("returned"), "Messages returned because their stream left before they were delivered.", "messages_returned_total", "Returned"),
    Figure("purged", _TOTAL, _counted("purged"), "Acknowledged messages that were old enough, and deleted.", "messages_purged_total", "Purged"),
    Figure("purge_failures", _TOTAL, _counted("purge_failures"), "Purges of a shard that failed; each is tried again.", "purge_failures_total", "Purge failures"),
    Figure("delivery_latency_p50_s", _SECONDS, _quantile("delivery_latency", 0.5), ""),
    Figure("delivery_latency_p99_s", _SECONDS, _quantile("delivery_latency", 0.99), "From ready to delivered: half of all messages, and 99 of 100, took at most so long.", "", "Delivery latency", "latency"),
    Figure("ack_latency_p50_s", _SECONDS, _quantile("ack_latency", 0.5), ""),
    Figure("ack_latency_p99_s", _SECONDS, _quantile("ack_latency", 0.99), "From delivered to acknowledged: half of all messages, and 99 of 100, took at most so long.", "", "Ack latency", "ack time"),
    Figure("is_paused", _SWITCH, lambda look: int(look.properties.paused), "Whether vt_paused keeps the queue from delivering.", "queue_paused"),
    Figure("max_rate", _RATE, _max_rate, "Messages a second that may be delivered (vt_max_rate).", "queue_max_rate"),
    Figure("max_in_flight", _COUNT, lambda look: look.properties.max_in_flight, "Messages that may be in flight (vt_max_in_flight).", "queue_max_in_flight"),
    Figure("parked_total", _TOTAL, _counted("parked"), "Messages parked because they had been delivered vt_max_attempts times.", "messages_parked_total", "Parked in total"),
    Figure("dead_lettered_total", _TOTAL, _counted("dead_lettered"), "Messages moved to the dead letters because they had been delivered vt_max_attempts times.", "messages_dead_lettered_total", "Dead letters in total"),
    Figure("partitions_overdue", _COUNT, _known("partitions_overdue"), "Partitions that should have been dropped or made.", "queue_partitions_overdue"),
    Figure("set_aside", _COUNT, _known("set_aside"), "Rows that the server refuses to write.", "queue_set_aside"),
)  # fmt: skip
