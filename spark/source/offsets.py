"""What a stream writes into its checkpoint, and which checkpoint it goes on from: pure.

Spark keeps an offset for each batch as JSON. A queue's holds the ids that the batch took, by shard and by the epoch that the
claim gave them, so the batch can be read again as often as it must. A feed's holds how far each shard was read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from streamfrom.spark.errors import RequestError


_CURE: Final = "give this query a checkpointLocation of its own"

Id = int | str
"""An id in JSON: a whole number, a text, or the hex digits of bytes."""
Claims = dict[str, dict[int, list[Id]]]
"""Ids by shard and epoch."""


@dataclass(frozen=True)
class QueueOffset:
    """The batch with the number *sequence* is made of *claims*; number 0 has none."""

    table: str
    sequence: int = 0
    claims: Claims = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """Return what Spark keeps, in which epochs are texts."""
        return {"feed": "queue", **vars(self)}


def queue_offset(told: "Any", table: str, shards: "tuple[str, ...]") -> QueueOffset:
    """Read an offset of the queue of *table*.

    Raises:
        RequestError: it is of another table, of a feed, of another source, or of a shard not read here.
    """
    _check(told, "queue", table)
    claims = {
        shard: {int(epoch): ids for epoch, ids in by_epoch.items()}
        for shard, by_epoch in told["claims"].items()
    }
    _check_shards(claims, shards)
    return QueueOffset(table, told["sequence"], claims)


def feed_offset(table: str, upto_ns: "Mapping[str, int]") -> dict[str, Any]:
    """Return what Spark keeps of a feed whose shards were read up to and with *upto_ns*."""
    return {"feed": "acked", "table": table, "upto_ns": dict(upto_ns)}


def feed_upto_ns(told: "Any", table: str, shards: "tuple[str, ...]") -> dict[str, int]:
    """Return how far each shard of the feed of *table* was read.

    Raises:
        RequestError: as for `queue_offset`.
    """
    _check(told, "acked", table)
    _check_shards(told["upto_ns"], shards)
    return dict(told["upto_ns"])


def _check(told: "Any", feed: str, table: str) -> None:
    if not isinstance(told, dict) or "feed" not in told:
        raise RequestError(f"the checkpoint belongs to another source: {_CURE}")
    if (told["feed"], told["table"]) != (feed, table):
        raise RequestError(
            f"the checkpoint belongs to a query of {told['table']} with feed={told['feed']}, this"
            f" one reads {table} with feed={feed}: {_CURE}"
        )


def _check_shards(found: "Mapping[str, Any]", shards: "tuple[str, ...]") -> None:
    lost = sorted(found.keys() - set(shards))
    if lost:
        raise RequestError(
            f"the checkpoint speaks of shard {', '.join(lost)}, and this query reads"
            f" {', '.join(shards)}: start it with the shards that it had, or {_CURE}"
        )
