"""Questions of the proxy's own to a shard that may be away for a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from proxy.errors import BackendUnavailable


if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from proxy.backends.shard import ShardRuntime
    from proxy.exchange.executor import Executor


T = TypeVar("T")


async def patiently(
    executor: Executor, shard: ShardRuntime, ask: Callable[[], Awaitable[T]]
) -> T:
    """Return what *ask* returns; outside a transaction wait for a shard that is away.

    Raises:
        BackendUnavailable: it stayed away, or a transaction is open and cannot wait.
    """
    deadline = executor.deadline()
    while True:
        try:
            return await ask()
        except BackendUnavailable:
            may_wait = not executor.branches.in_transaction
            if not may_wait or not await shard.wait_available(deadline):
                raise
