"""The attempts of one statement, as `proxy.execution.retry_rules` allow them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.execution.retry_rules import Ending, Verdict, decide


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.session_state import SessionState
    from streamfrom.proxy.execution.transaction import Branches


# The pause between a refusal and the next attempt: the known health of the server may be older.
_PAUSE_S: Final = 0.05


class Retries:
    """The attempts to run one statement: each asks the rules, and waits where they say so.

    All of them have one deadline.
    """

    def __init__(
        self,
        state: SessionState,
        branches: Branches,
        *,
        is_read: bool,
        is_ack: bool,
        buffer_s: float,
    ) -> None:
        """*is_read* and *is_ack*: as `decide`. *buffer_s*: how many seconds the attempts may wait."""
        self._state = state
        self._branches = branches
        self._is_read = is_read
        self._is_ack = is_ack
        self._renewals = 0
        self._deadline_s = asyncio.get_running_loop().time() + buffer_s
        self._has_begun = branches.has_begun

    async def again(
        self, ending: Ending, *shards: ShardRuntime, is_final: bool = False
    ) -> bool:
        """Return whether to send the statement again, now that *shards* are there for it.

        is_final: the client has seen some of the answer.
        """
        branches = self._branches
        verdict = decide(
            ending,
            in_transaction=self._has_begun or branches.is_broken,
            is_read=self._is_read,
            is_ack=self._is_ack and self._state.settings.autocommit,
            is_final=is_final or self._state.is_stopped,
            renewals=self._renewals,
            is_late=asyncio.get_running_loop().time() >= self._deadline_s,
        )
        if verdict is Verdict.STANDS:
            return False
        if verdict is Verdict.AGAIN:
            self._renewals += 1
        else:
            if ending is Ending.READ_ONLY:
                await asyncio.sleep(_PAUSE_S)
            for shard in shards:
                if not await shard.wait_available(self._deadline_s):
                    return False
        self._has_begun = branches.has_begun
        return True
