"""`engine.messaging.table.store_job.Store` over real servers: runs the engine's conversations without deciding anything.

Claims and releases run on a relay connection, whose rows stay the bytes that the server sent:
a message reaches its consumer without ever being decoded. Everything else runs on the shard's
control connections.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from streamfrom.engine.errors import PartitionsChanging, StoreError, TableGone
from streamfrom.engine.fleet.lock_connection import NO_SUCH_TABLE
from streamfrom.engine.messaging.store.conversation import At, ServerRefused, StoreAnswer
from streamfrom.engine.messaging.table.store_job import Access, Store, StoreJob
from streamfrom.proxy.backends.account import SHARDS_ACCOUNT, Account
from streamfrom.proxy.backends.backend import Backend, ConnectionOwner, ProxyItself
from streamfrom.proxy.backends.lock_session import (
    answer_of,
    carry_out,
    packets_of,
    store_answer,
)
from streamfrom.proxy.backends.session_variables import own_settings
from streamfrom.proxy.errors import ProxyError


if TYPE_CHECKING:
    from streamfrom.engine.clock import Clock
    from streamfrom.engine.fleet.elector import Elector
    from streamfrom.engine.messaging.store.conversation import Conversation, StoreQuery
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.proxy.backends.shard import ShardRuntime


T = TypeVar("T")

STATEMENT_TIMEOUT_S: Final = 10.0
# Dropping a partition of many gigabytes takes seconds, and the server continues after a client that gives up.
PARTITION_TIMEOUT_S: Final = 120.0
# Of one shard. The tables of a proxy purge at the same moments, on connections of the pool that clients wait for.
PURGES_AT_ONCE: Final = 2
# A dispatcher's change of partitions takes a tenth of a second; a reader of the partitions tries again meanwhile.
CHANGING_PAUSES_S: Final = (0.05, 0.1, 0.2, 0.4, 0.8)


# With autocommit off a claim is one transaction without a BEGIN.
_SETTINGS: Final = [own_settings(on_mariadb=each, autocommit=False) for each in (False, True)]
_ENGINES: Final = [ProxyItself(SHARDS_ACCOUNT, settings) for settings in _SETTINGS]


def acks_owner(runtime: ShardRuntime, account: Account) -> ConnectionOwner:
    """Return the owner of connections to *runtime* on which acks of *account* are written together.

    Their statements wait for a lock, for example of a definition that is being changed, for no more than a second.
    """
    waits = ("lock_wait_timeout", "1"), ("innodb_lock_wait_timeout", "1")
    return ProxyItself(account, _SETTINGS[runtime.is_mariadb].with_changes(waits))


class ShardStore(Store):
    """The message tables of all shards.

    elector_of: returns the election by which this process may write to a shard; without one it always may.
    """

    def __init__(
        self,
        shards: Mapping[tuple[str, ShardName], ShardRuntime],
        clock: Clock,
        elector_of: Callable[[str, ShardName], Elector | None] = lambda *_: None,
    ) -> None:
        self._shards = shards
        self._elector_of = elector_of
        self._clock = clock
        self._purges: defaultdict[tuple[str, ShardName], asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(PURGES_AT_ONCE)
        )

    def answering_first(
        self, keyspace: str, shards: Sequence[ShardName]
    ) -> Sequence[ShardName]:
        """Return *shards*, with those that do not respond at the end."""
        return sorted(shards, key=lambda name: not self._runtime(keyspace, name).is_answering)

    def _runtime(self, keyspace: str, shard: ShardName) -> ShardRuntime:
        runtime = self._shards.get((keyspace, shard))
        if runtime is None:
            raise StoreError(f"the configuration does not name {keyspace}/{shard} any more")
        return runtime

    async def ask(
        self, keyspace: str, shard: ShardName, question: Callable[[str], Conversation[T]]
    ) -> T:
        """Run a query that is not about one table. Raises StoreError."""
        runtime = self._runtime(keyspace, shard)
        return await by_control(runtime, question(runtime.database))

    async def run(self, table: MessageTable, shard: ShardName, job: StoreJob[T]) -> T:
        """Carry out a job of a scheduler. Raises StoreError."""
        at = table.keyspace, shard
        runtime, is_elected = self._runtime(*at), self._elector_of(*at) is not None

        def talk() -> Conversation[T]:
            # The clock is read once there is a connection, for which a claim may wait.
            return job.talk(table, At(shard, self._clock.time_ns(), is_elected))

        match job.access:
            case Access.READ:
                for pause_s in CHANGING_PAUSES_S:
                    with suppress(PartitionsChanging):
                        return await by_control(runtime, talk())
                    await asyncio.sleep(pause_s)
                return await by_control(runtime, talk())
            case Access.WRITE:
                return await self._by_backend(runtime, talk)
            case Access.DISPATCH:
                return await self._as_dispatcher(*at, talk)
            case Access.UPKEEP:
                async with self._purges[at]:
                    return await self._by_backend(runtime, talk)
            case Access.APART:
                return await self._by_backend(runtime, talk, is_apart=True)

    async def _as_dispatcher(
        self, keyspace: str, shard: ShardName, make: Callable[[], Conversation[T]]
    ) -> T:
        runtime = self._runtime(keyspace, shard)
        elector = self._elector_of(keyspace, shard)
        if elector is None:
            return await self._by_backend(runtime, make)
        try:
            return await elector.write(make)
        except ProxyError as error:
            raise _failed(runtime, error) from error

    async def _by_backend(
        self,
        runtime: ShardRuntime,
        make: Callable[[], Conversation[T]],
        *,
        is_apart: bool = False,
    ) -> T:
        """Run a conversation on a connection; one that runs apart is closed behind it, with all locks that it took."""
        ask = _patiently if is_apart else _plainly
        timeout_s = PARTITION_TIMEOUT_S if is_apart else STATEMENT_TIMEOUT_S
        try:
            backend = await runtime.pool.acquire(_ENGINES[runtime.is_mariadb], runtime.database)
        except ProxyError as error:
            raise StoreError(str(error)) from error
        is_kept = False
        try:
            async with asyncio.timeout(timeout_s):
                result = await carry_out(make(), partial(ask, runtime, backend))
            is_kept = not is_apart
        except (ProxyError, ServerRefused, TimeoutError) as error:
            raise _failed(runtime, error, timeout_s) from error
        finally:
            # The transaction of a failed job is undone with its connection.
            (runtime.pool.release if is_kept else runtime.pool.discard)(backend)
        return result


def _failed(runtime: ShardRuntime, error: Exception, timeout_s: float = 0.0) -> StoreError:
    """Check the server, and return the engine's error for its failure."""
    runtime.suspect()
    return StoreError(str(error) or f"no answer in {timeout_s:g} s")


async def _plainly(_: ShardRuntime, backend: Backend, query: StoreQuery) -> StoreAnswer:
    return answer_of(query, await backend.pipeline(packets_of(query)))


async def by_control(runtime: ShardRuntime, conversation: Conversation[T]) -> T:
    """Run a conversation on the control connections of *runtime*. Raises StoreError."""

    async def ask(query: StoreQuery) -> StoreAnswer:
        control, sql = runtime.control, query.sql.decode()
        if query.skips_locked:
            rows, has_skipped = await control.rows_unlocked(sql, on_mariadb=runtime.is_mariadb)
            return StoreAnswer([(_texts(row), b"") for row in rows], 0, has_skipped)
        if query.values != 0:
            return StoreAnswer([(_texts(row), b"") for row in await control.rows(sql)])
        return StoreAnswer(affected=await control.execute(sql))

    try:
        return await carry_out(conversation, ask)
    except (ProxyError, ServerRefused) as error:
        is_gone = isinstance(error, ServerRefused) and error.code == NO_SUCH_TABLE
        raise (TableGone if is_gone else StoreError)(str(error)) from error


async def _patiently(runtime: ShardRuntime, backend: Backend, query: StoreQuery) -> StoreAnswer:
    """Return the answer; a statement that takes longer than its patience is killed, and that is its answer."""
    asked = asyncio.ensure_future(backend.query(query.sql))
    # Read in any case: asyncio logs an exception that is never read.
    asked.add_done_callback(lambda end: end.cancelled() or end.exception())
    try:
        done, _ = await asyncio.wait([asked], timeout=query.patience_s)
        if not done:
            await runtime.control.kill(backend.thread_id, query_only=True)
        return store_answer(await asked, query.values)
    finally:
        asked.cancel()


def _texts(row: tuple[Any, ...]) -> tuple[bytes | None, ...]:
    # A poll has thousands of rows of two numbers: a generator for each, and `str` with `encode`, were 5 % of a drain.
    return tuple(
        [
            b"%d" % value
            if type(value) is int
            else value
            if value is None or isinstance(value, bytes)
            else str(value).encode()
            for value in row
        ]
    )
