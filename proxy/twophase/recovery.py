"""Finishes the transactions over several shards that a proxy left half way.

Every proxy with `transaction_mode = "twopc"` queries all its shards, at its start and then every
2 s, for prepared branches and kept decisions. `proxy.twophase.triage` decides what to do. Several
proxies may do the same work at the same time; the second finds nothing left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog

from streamfrom.proxy.errors import BackendError, BackendUnavailable, NoDecisionTable
from streamfrom.proxy.twophase.coordinator import XA_NO_SUCH_BRANCH, Coordinator
from streamfrom.proxy.twophase.decisions import Decisions, TransactionOutcome
from streamfrom.proxy.twophase.triage import Seen, Triage
from streamfrom.proxy.twophase.xid import Xid, recovered


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime


log = structlog.get_logger()

LOOK_INTERVAL_S: Final = 2.0
# Longer than a server takes to crash in the middle of an XA COMMIT and to come back.
QUIET_S: Final = 300.0


class Recovery:
    """Looks at all *shards*, of which there may be others at each look. *grace_s*: how long a prepared branch is left to its own proxy."""

    def __init__(
        self,
        shards: Collection[ShardRuntime],
        decisions: Decisions,
        coordinator: Coordinator,
        *,
        grace_s: float,
    ) -> None:
        self._shards = shards
        self._decisions = decisions
        self._coordinator = coordinator
        self._triage = Triage(grace_s=grace_s, quiet_s=QUIET_S)
        self._task: asyncio.Task[None] | None = None
        # The last logged trouble of each shard: every look meets it again.
        self._troubles: dict[ShardRuntime, str] = {}

    def set_grace(self, grace_s: float) -> None:
        """Set how long a prepared branch is left to its proxy from now on."""
        self._triage.grace_s = grace_s

    async def start(self) -> None:
        """Look once, then continue in the background."""
        await self.look()
        self._task = asyncio.create_task(self._watch(), name="recovery")

    async def stop(self) -> None:
        """Stop looking, and forget decisions that are done with."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            await self._decisions.flush()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(max(min(LOOK_INTERVAL_S, self._triage.grace_s), 0.1))
            try:
                await self.look()
            except Exception as error:
                log.exception("recovery failed", exc_info=error)

    async def look(self) -> None:
        """Look at all shards that can be reached, and finish their open branches."""
        await self._decisions.flush()
        seen: dict[str, Seen] = {}
        for shard in list(self._shards):
            # A shard that does not respond is left out, which keeps every decision that names it.
            if shard.trouble is None:
                await self._look_at(shard, seen)
        known = self._decisions.known()
        findings = self._triage.look(
            asyncio.get_running_loop().time(),
            seen,
            known=known.keys(),
            live=self._coordinator.live,
        )
        for xid in findings.strangers:
            log.warning(
                "a prepared transaction belongs to shards that this proxy does not serve",
                xid=str(xid),
            )
        for table, xid in findings.resolve:
            await self._resolve(known[xid.whole.table], known[table], xid)
        for whole in findings.forget:
            self._decisions.forget(known[whole.table], whole)

    async def _look_at(self, shard: ShardRuntime, seen: dict[str, Seen]) -> None:
        try:
            table = await self._decisions.table_of(shard)
            decided = await self._decisions.rows(shard)
            branches = map(recovered, await shard.control.rows("XA RECOVER"))
        except (BackendError, BackendUnavailable, NoDecisionTable) as error:
            trouble = str(error)
            if self._troubles.get(shard) != trouble:
                self._troubles[shard] = trouble
                log.warning(
                    "cannot look for unfinished transactions", shard=str(shard), reason=trouble
                )
            return
        self._troubles.pop(shard, None)
        seen[table] = Seen(frozenset(xid for xid in branches if xid is not None), decided)

    async def _resolve(self, first: ShardRuntime, shard: ShardRuntime, xid: Xid) -> None:
        # Read again, under a lock: what the look has seen may be over by now.
        outcome = await self._decisions.outcome(first, xid.whole)
        if outcome is TransactionOutcome.UNKNOWN:
            return
        sql = (
            xid.sql("COMMIT")
            if outcome is TransactionOutcome.COMMITTED
            else xid.sql("ROLLBACK")
        )
        try:
            await shard.control.execute(sql.decode())
        except (BackendError, BackendUnavailable) as error:
            # No such branch: another proxy was faster, or its connection is still there.
            if not isinstance(error, BackendError) or error.code != XA_NO_SUCH_BRANCH:
                log.warning("cannot finish a transaction", xid=str(xid), reason=str(error))
            return
        log.info("finished a transaction", xid=str(xid), shard=str(shard), how=outcome.value)
