"""What the log is told of one message table: its shards that fail, its streams that stand still, its messages that were given up."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import TableGone
from streamfrom.sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamfrom.engine.messaging.message import ClaimResult, Receiver
    from streamfrom.engine.messaging.message_table import MessageTable
    from streamfrom.engine.messaging.set_aside import SetAsideRow
    from streamfrom.engine.sharding.keyspace import ShardName


# A line names so many ids.
IDS_TOLD_MAX: Final = 10
# Of so many rows of a shard that are set aside each has its line.
SET_ASIDE_TOLD_MAX: Final = 100

log = logging.getLogger(__name__)


class TableLog:
    """The lines of one table.

    Attributes:
        table: the table as it is scheduled now.
    """

    def __init__(self, table: MessageTable) -> None:
        self.table = table
        self._failing: set[ShardName] = set()

    def failed(self, what: str, shard: ShardName, error: Exception) -> None:
        """Tell of the first failure of a shard, and of everything that is a fault of our own."""
        where = (what, self.table.name, self.table.keyspace, shard)
        extra = self._named(shard)
        if not isinstance(error, StreamfromError):
            log.error("%s of %s on %s/%s failed", *where, exc_info=error, extra=extra)
        elif shard not in self._failing:
            # Whoever drops a queue knows that messages were in flight.
            level = logging.INFO if isinstance(error, TableGone) else logging.WARNING
            log.log(level, "%s of %s on %s/%s failed: %s", *where, error, extra=extra)
        self._failing.add(shard)

    def works(self, shard: ShardName) -> None:
        """Tell of the first success of a shard that failed."""
        if shard in self._failing:
            self._failing.discard(shard)
            where = (self.table.name, self.table.keyspace, shard)
            log.info("%s on %s/%s works again", *where, extra=self._named(shard))

    def standing(self, receiver: Receiver, held: int, since_s: float) -> None:
        """Tell of a stream whose prefetch is full and that acknowledges nothing."""
        shards = "all shards" if receiver.shards is None else ", ".join(sorted(receiver.shards))
        log.warning(
            "stream of %s.%s (%s) on connection %d stands still: it holds %d messages, which is"
            " its prefetch, and has acknowledged none for %.0f s",
            self.table.keyspace,
            self.table.name,
            shards,
            receiver.connection_id,
            held,
            since_s,
            extra={**self.table.named, "connection": receiver.connection_id},
        )

    def spent(self, shard: ShardName, result: ClaimResult) -> None:
        """Tell of messages that a claim parked, or moved to the dead letters."""
        dead_letter = self.table.properties.dead_letter
        if result.parked:
            where = "are parked"
            if result.why_parked is not None:
                where += f", as {dead_letter} did not take them ({result.why_parked})"
            self._spent(shard, result.parked, where)
        if result.dead:
            self._spent(shard, result.dead, f"are in {dead_letter}")

    def _spent(self, shard: ShardName, ids: Sequence[bytes], where: str) -> None:
        log.warning(
            "%d messages of %s.%s on %s were sent vt_max_attempts (%d) times, and %s: %s%s",
            len(ids),
            self.table.keyspace,
            self.table.name,
            shard,
            self.table.properties.max_attempts,
            where,
            b", ".join(ids[:IDS_TOLD_MAX]).decode(errors="replace"),
            " and more" if len(ids) > IDS_TOLD_MAX else "",
            extra=self._named(shard),
        )

    def set_aside(
        self, shard: ShardName, found: Sequence[tuple[bytes, SetAsideRow]], count: int
    ) -> None:
        """Tell of rows that the server does not write. count: how many are set aside by now."""
        for ident, row in found:
            if count > SET_ASIDE_TOLD_MAX:
                log.warning("rows set aside", extra={**self._named(shard), "count": count})
                return
            fields = {"id": ident.decode(errors="replace"), "tried": row.tried.value}
            log.warning(
                "row set aside", extra={**self._named(shard), **fields, "error": row.error}
            )

    def acks_lost(self, shard: ShardName, ids: Sequence[bytes]) -> None:
        """Tell of acks that were answered and that are not written when the proxy stops."""
        told = b", ".join(ids[:IDS_TOLD_MAX]).decode(errors="replace")
        log.warning(
            "acks not written", extra={**self._named(shard), "count": len(ids), "ids": told}
        )

    def dead_members(
        self, shard: ShardName, found: Sequence[tuple[bytes, bytes, bytes]]
    ) -> None:
        """Tell of messages that wait for a group with a parked message: each with that message and its group."""
        for each in found[:IDS_TOLD_MAX]:
            ident, member, group = (one.decode(errors="replace") for one in each)
            log.warning(
                "message %s of %s.%s on %s waits for group %s, whose message %s is parked: it fires once that is"
                " acknowledged or deleted",
                ident,
                self.table.keyspace,
                self.table.name,
                shard,
                group,
                member,
                extra=self._named(shard),
            )

    def _named(self, shard: ShardName) -> dict[str, str]:
        return {**self.table.named, "shard": shard}
