"""The log lines of one message table: failing shards, stalled streams, messages that were given up."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import NotDispatched, TableGone
from streamfrom.sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from streamfrom.engine.messaging.dispatch.events import ReportStanding
    from streamfrom.engine.messaging.gates.set_aside import SetAsideRow
    from streamfrom.engine.messaging.table.message import ClaimResult, Receiver
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName


# The most ids in a line.
IDS_LOGGED_MAX: Final = 10
# Up to this many rows of a shard that are set aside have a line each.
SET_ASIDE_LOGGED_MAX: Final = 100
# The setting for a consumer that acknowledges n messages at once: `auto` gives it no more before its first ack.
COLLECTS: Final = (
    "if it collects n messages before it acknowledges them, write STREAM /*vt+ PREFETCH=n */,"
    " or take them with STREAM … LIMIT n"
)

log = logging.getLogger(__name__)


class TableLog:
    """The lines of one table.

    Attributes:
        table: the table as it is scheduled now.
    """

    def __init__(self, table: MessageTable) -> None:
        self.table = table
        self._failing: dict[ShardName, str] = {}  # the last kind of failure

    def failed(self, what: str, shard: ShardName, error: Exception) -> None:
        """Log the first failure of a shard, and every fault of our own."""
        extra = {**self.table.named_on(shard), "task": what, "reason": str(error)}
        if not isinstance(error, StreamfromError):
            log.error("work on a queue failed", exc_info=error, extra=extra)
        elif shard not in self._failing:
            # The user who drops a queue knows that messages were in flight; a shard goes to another member at each stop.
            is_quiet = isinstance(error, (TableGone, NotDispatched))
            level = logging.INFO if is_quiet else logging.WARNING
            log.log(level, "work on a queue failed", extra=extra)
        self._failing[shard] = what

    def works(self, what: str, shard: ShardName) -> None:
        """Log that a failing operation works again. While a lock blocks writes on a shard its reads still work, so these prove nothing."""
        if self._failing.get(shard) == what:
            del self._failing[shard]
            log.info("work on a queue continues", extra=self.table.named_on(shard))

    def standing(self, receiver: Receiver, found: ReportStanding, since_s: float) -> None:
        """Log a stream whose prefetch is full and that acknowledges nothing, and what to do if it waits for more."""
        shards = "all shards" if receiver.shards is None else ", ".join(sorted(receiver.shards))
        fields = {"connection": receiver.connection_id, "shards": shards, "unacked": found.held}
        if found.is_collecting:
            fields["advice"] = COLLECTS
        log.warning(
            "stream stalled", extra={**self.table.named, **fields, "stalled_s": round(since_s)}
        )

    def spent(self, shard: ShardName, result: ClaimResult) -> None:
        """Log messages that a claim parked, or moved to the dead letters."""
        properties = self.table.properties
        fields: dict[str, object] = {"attempts": properties.max_attempts}
        if properties.dead_letter is not None:
            fields["dead_letter"] = properties.dead_letter
        if result.parked:
            reason = {} if result.why_parked is None else {"reason": result.why_parked}
            named = self._ids(shard, result.parked)
            log.warning("messages parked", extra={**named, **fields, **reason})
        if result.dead:
            named = self._ids(shard, result.dead)
            log.warning("messages dead-lettered", extra={**named, **fields})

    def set_aside(
        self, shard: ShardName, found: Sequence[tuple[bytes, SetAsideRow]], count: int
    ) -> None:
        """Log rows that the server does not write. count: how many are set aside now."""
        for ident, row in found:
            if count > SET_ASIDE_LOGGED_MAX:
                log.warning(
                    "rows set aside", extra={**self.table.named_on(shard), "count": count}
                )
                return
            fields = {"id": ident.decode(errors="replace"), "tried": row.tried.value}
            log.warning(
                "row set aside",
                extra={**self.table.named_on(shard), **fields, "error": row.error},
            )

    def acks_lost(self, shard: ShardName, ids: Sequence[bytes]) -> None:
        """Log answered acks that are still unwritten when the proxy stops."""
        log.warning("acks not written", extra=self._ids(shard, ids))

    def dead_members(
        self, shard: ShardName, found: Sequence[tuple[bytes, bytes, bytes]]
    ) -> None:
        """Log messages that wait for a group with a parked message: each with that message and its group."""
        for each in found[:IDS_LOGGED_MAX]:
            ident, member, group = (one.decode(errors="replace") for one in each)
            fields = {"id": ident, "group": group, "parked_id": member}
            log.warning(
                "message waits for a parked one", extra={**self.table.named_on(shard), **fields}
            )

    def _ids(self, shard: ShardName, ids: Sequence[bytes]) -> dict[str, object]:
        shown = b", ".join(ids[:IDS_LOGGED_MAX]).decode(errors="replace")
        return {**self.table.named_on(shard), "count": len(ids), "ids": shown}
