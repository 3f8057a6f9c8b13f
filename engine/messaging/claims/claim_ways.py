"""The job of a claim: which way rows are won."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from streamfrom.engine.messaging.claims.claim_writes import claim
from streamfrom.engine.messaging.claims.first_delivery import take
from streamfrom.engine.messaging.claims.ordered_claim import claim_in_order
from streamfrom.engine.messaging.table.store_job import Access
from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.messaging.claims.claim_writes import ClaimRequest
    from streamfrom.engine.messaging.store.conversation import Conversation
    from streamfrom.engine.messaging.table.message import ClaimResult
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.messaging.table.store_job import At


@record
class ClaimJob:
    """A claim."""

    name: ClassVar = "claim"
    access: ClassVar = Access.DISPATCH

    request: ClaimRequest

    def talk(self, table: MessageTable, at: At) -> Conversation[ClaimResult]:
        """Return its conversation."""
        if table.properties.in_order is not None:
            return claim_in_order(
                table, at.shard, self.request, at.now_ns, is_elected=at.is_elected
            )
        # Without an election another process may send the same row; only a written claim prevents that.
        way = take if at.is_elected else claim
        return way(table, at.shard, self.request, at.now_ns)
