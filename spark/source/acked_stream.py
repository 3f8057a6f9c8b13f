"""Acknowledged messages as a stream: append-only, in order of `time_acked`, a safety lag behind now.

Nothing is claimed or written. A batch holds the rows that each shard acknowledged between two moments, both in the past by the
shard's own clock, so it is the same whenever it is read, until it is purged. The lag is for acknowledgements whose
transaction commits after their `time_acked`; one that takes longer than the lag is missed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from streamfrom.spark.endpoint import clock_of, marked
from streamfrom.spark.source.batch import StreamReader, TablePartition, told_apart, told_plainly
from streamfrom.spark.source.offsets import by_shard, offset_of


if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

    from streamfrom.spark.source.options import Options
    from streamfrom.spark.table_schema import Field


class AckedStreamReader(StreamReader):
    """Reads each shard up to a moment that only increases; messages of the same moment are never split."""

    def __init__(
        self, options: "Options", shards: "tuple[str, ...]", fields: "Sequence[Field]"
    ) -> None:
        super().__init__(options, shards, fields)
        self.until_ns: dict[str, int] = {}

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before every acknowledgement."""
        return offset_of("acked", self.table, upto_ns=dict.fromkeys(self.shards, 0))

    @told_plainly()
    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of the stream."""
        self.until_ns = {shard: self._safe_ns(shard) for shard in self.shards}

    @told_plainly()
    def latestOffset(self, start: "dict[str, Any]", limit: "ReadLimit") -> dict[str, Any]:
        """Return the end of the next batch, or *start* if there is nothing new.

        Raises:
            RequestError: the checkpoint belongs to another query.
            JobError: a shard is unreachable.
        """
        before = self._upto_ns(start)
        share = -(-self.rows_of(limit) // len(self.shards))
        upto_ns = {
            shard: self._next_ns(shard, before.get(shard, 0), share) for shard in self.shards
        }
        return offset_of("acked", self.table, upto_ns=upto_ns)

    @told_plainly()
    def partitions(
        self, start: "dict[str, Any]", end: "dict[str, Any]"
    ) -> "Sequence[TablePartition]":
        """Return the parts with each shard's rows acknowledged after *start*, up to and including *end*."""
        low, high = self._upto_ns(start), self._upto_ns(end)
        return [
            TablePartition(
                shard, "time_acked > %s AND time_acked <= %s", (low.get(shard, 0), upto)
            )
            for shard, upto in high.items()
            if upto > low.get(shard, 0)
        ]

    def _upto_ns(self, told: "dict[str, Any]") -> dict[str, int]:
        return by_shard(told, "acked", self.table, self.shards, "upto_ns")

    def _safe_ns(self, shard: str) -> int:
        with told_apart(self.options.endpoint, shard):
            return clock_of(self.options.endpoint, shard) - int(self.options.lag_s * 1e9)

    def _next_ns(self, shard: str, after_ns: int, rows: int) -> int:
        """Return a moment that covers about *rows* more rows, never less than *after_ns*."""
        until_ns = self._safe_ns(shard)
        until_ns = min(until_ns, self.until_ns.get(shard, until_ns))
        newest = (
            f"SELECT MAX(time_acked) FROM (SELECT time_acked FROM {marked(self.options.table)}"  # noqa: S608  quoted
            " WHERE time_acked > %s AND time_acked <= %s ORDER BY time_acked LIMIT %s) AS soonest"
        )
        with told_apart(self.options.endpoint, shard):
            ((found,),) = self.options.endpoint.ask(newest, (after_ns, until_ns, rows), shard)
        return after_ns if found is None else max(after_ns, int(found))
