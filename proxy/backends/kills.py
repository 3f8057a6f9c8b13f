"""Killing what runs on a connection of a server, by the connection's own account.

A server lets an account kill its own threads; to kill those of others takes a right that the shards' account may lack. So
what a user's own account runs is killed on a connection of that account. It is opened outside of the pool, as a full pool is when
a KILL is needed most, and the last one is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import BackendError, ProxyError


if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from streamfrom.proxy.backends.account import Account
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.control_connection import Control


# At the same moment on one server; later ones wait.
CONNECTIONS_MAX: Final = 4
TIMEOUT_S: Final = 10.0
_NO_SUCH_THREAD: Final = 1094


class Kills:
    """The KILL statements on one server.

    control: kills what runs under the account of the shard's address.
    open_backend: opens a connection of an account, without a database.
    """

    def __init__(
        self,
        control: Control,
        open_backend: Callable[[Account, None, int], Awaitable[Backend]],
        log: FilteringBoundLogger,
    ) -> None:
        self._control = control
        self._open_backend = open_backend
        self._log = log
        self._kept: Backend | None = None
        self._turns = asyncio.Semaphore(CONNECTIONS_MAX)

    async def kill(self, backend: Backend, *, query_only: bool = False) -> None:
        """End *backend* at its server, or only its statement; one that is gone already is no error.

        Where the server refuses that to the account of *backend*, or cannot be asked, *backend* is closed.
        """
        if not backend.account.is_own:
            await self._control.kill(backend.thread_id, query_only=query_only)
            return
        try:
            async with asyncio.timeout(TIMEOUT_S), self._turns:
                await self._kill(backend, query_only=query_only)
        except (ProxyError, TimeoutError) as error:
            backend.abort()
            self._log.warning(
                "statement could not be killed: the server may continue it",
                user=backend.account.name,
                thread=backend.thread_id,
                reason=str(error) or f"no answer within {TIMEOUT_S:g} s",
            )

    def close(self) -> None:
        """Close the connection that is kept; the next KILL opens another one."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    async def _kill(self, backend: Backend, *, query_only: bool) -> None:
        ours, self._kept = self._kept, None
        if ours is not None and (ours.account != backend.account or ours.is_closed):
            ours.close()
            ours = None
        if ours is None:
            ours = await self._open_backend(backend.account, None, 0)
        what = b"QUERY " if query_only else b""
        try:
            await ours.query(b"KILL %b%d" % (what, backend.thread_id))
        except BackendError as error:
            if error.code != _NO_SUCH_THREAD:
                ours.close()
                raise
        except BaseException:
            ours.abort()
            raise
        # Others may have killed meanwhile.
        self.close()
        self._kept = ours
