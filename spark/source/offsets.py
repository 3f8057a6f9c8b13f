"""The offsets in a stream's checkpoint, and the check that a checkpoint belongs to the stream: pure.

Spark stores an offset for each batch as JSON. A queue's holds the number of the batch and its ids, by shard and by the epoch of the
claim, so the batch can be read again as often as necessary. A feed's holds how far each shard was read.
"""

from typing import Any, Final

from streamfrom.spark.errors import RequestError


_CURE: Final = "give this query a checkpointLocation of its own"

Id = int | str
"""An id in JSON: a whole number, a text, or the hex digits of bytes."""
Claims = dict[str, dict[int, list[Id]]]
"""Ids by shard and epoch."""


def offset_of(feed: str, table: str, **more: Any) -> dict[str, Any]:
    """Return the offset of a *feed* of *table*, for Spark to store."""
    return {"feed": feed, "table": table, **more}


def by_shard(
    told: "Any", feed: str, table: str, shards: "tuple[str, ...]", name: str
) -> dict[str, Any]:
    """Return the values by shard under *name* of an offset.

    Raises:
        RequestError: it belongs to another table, feed or source, or to a shard not read here.
    """
    if not isinstance(told, dict) or "feed" not in told:
        raise RequestError(f"the checkpoint belongs to another source: {_CURE}")
    if (told["feed"], told["table"]) != (feed, table):
        raise RequestError(
            f"the checkpoint belongs to a query of {told['table']} with feed={told['feed']}, this"
            f" one reads {table} with feed={feed}: {_CURE}"
        )
    found: dict[str, Any] = told[name]
    if lost := sorted(found.keys() - set(shards)):
        raise RequestError(
            f"the checkpoint speaks of shard {', '.join(lost)}, and this query reads"
            f" {', '.join(shards)}: start it with the shards that it had, or {_CURE}"
        )
    return found
