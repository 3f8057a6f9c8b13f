"""Run one SELECT on several shards and merge its rows into one answer.

Connections are taken in the order of the shards, as everywhere. The first shard reports the columns and the types
of the order (`merge_metadata`). Then every shard gets the same text, and a row goes to the client as soon as no other
row can precede it. A shard finally computes expressions over merged values. Waiting rows are bounded: the proxy stops
reading from a shard whose rows pile up, and from all shards while the client is behind. If a shard goes away
before the first byte was sent to the client, the proxy waits for it and queries all shards again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from streamfrom.proxy.backends.backend import LastDiagnostics
from streamfrom.proxy.backends.session_variables import UNLIMITED
from streamfrom.proxy.errors import BackendError, BackendLost, BackendUnavailable, MergeTooLarge
from streamfrom.proxy.execution.retry_rules import Ending, ending_of
from streamfrom.proxy.execution.session_tracking import spread_insert_id
from streamfrom.proxy.fairness import Slices
from streamfrom.proxy.merge.group_query import GroupsQuery
from streamfrom.proxy.merge.row_merge import RowsMerge, RowsQuery
from streamfrom.proxy.merge.shard_texts import Texts
from streamfrom.proxy.merge.stage import of_the_client
from streamfrom.proxy.sql.compile.large_texts import size_of
from streamfrom.proxy.sql.scatter.merge_metadata import ask_first
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import Status
from streamfrom.proxy.wire.resultset import parse_column_definition
from streamfrom.proxy.wire.row_collector import RowCollector
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.executor import Executor
    from streamfrom.proxy.merge.group_merge import ComputedGroups, GroupsMerge
    from streamfrom.proxy.routing.routes import Merge
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.sqlparse_ext.statements import Shape, Statement


_Rows: TypeAlias = "RowsMerge | GroupsMerge"

# Bytes of one shard's waiting rows: above the first figure the proxy stops reading from the shard, below the second it resumes.
WAITING_BYTES_MAX: Final = 256 << 10
_RESUME_BYTES: Final = WAITING_BYTES_MAX // 4
# How many rows of all shards go into the merge at once. A read of 256 KB brings 13,000 short rows, and groups cost 6 µs a
# row: merged at once, they would take 80 ms.
_BITE_ROWS: Final = 200
# With a LIMIT up to this, the rest of an answer is read and dropped; with a larger one the server is stopped.
_DRAIN_ROWS_MAX: Final = 1000


class RowSink(Protocol):
    """The consumer of a merged answer: the reply to a client, or a second stage."""

    # The rows become rows of the binary protocol, so their texts must have all digits.
    binary: bool

    def head(self, columns: Sequence[bytes]) -> None:
        """Take the column definitions, as payloads."""

    def more_rows(self, rows: Sequence[bytes]) -> None:
        """Take rows of the text protocol, as payloads."""

    def end_of_rows(self, *, status: int = 0, warnings: int = 0) -> None:
        """Take the end of the rows."""

    def take_back(self) -> bool:
        """Drop the columns and rows since `head` and return True; False if the client has them already."""


async def gather(
    context: SessionContext,
    database: str | None,
    shards: Sequence[ShardRuntime],
    statement: Statement,
    route: Merge,
    reply: RowSink,
    select_limit: str,
    otherwise: Callable[[], Awaitable[bool]] | None = None,
) -> bool:
    """Answer *statement* from all *shards*, and return True.

    select_limit: how many rows an answer without LIMIT has.
    otherwise: answers it if its rows cannot be merged and none were sent yet.

    Raises as any statement, and Unsupported or MergeTooLarge if the rows cannot be merged.
    """
    read = context.large_texts.read
    texts = await read(size_of(statement), Texts, statement, route.select)
    if texts.count is None and select_limit != UNLIMITED:
        texts.count = int(select_limit)
    retries = context.connections.retries(statement.shape)
    while True:
        attempt = _Gather(context, database, shards, statement, route, texts, reply)
        try:
            await attempt.run()
            return True
        except Unsupported:
            if otherwise is None or (attempt.has_written and not reply.take_back()):
                raise
            with suppress(Unsupported, MergeTooLarge):
                return await otherwise()
            raise
        except (BackendUnavailable, BackendLost, BackendError) as error:
            is_seen = attempt.has_written and not reply.take_back()
            ending = attempt.ending(error)
            if not await retries.again(ending, attempt.shard, is_final=is_seen):
                raise


class _Part:
    """The reader of one shard's answer, with its waiting rows."""

    def __init__(
        self, owner: _Gather, index: int, shard: ShardRuntime, backend: Backend
    ) -> None:
        self._owner = owner
        self.index = index
        self.shard = shard
        self.backend = backend
        self.scanner = RowCollector()
        # The error of a connection that broke, else None.
        self.failure: BackendLost | None = None
        self.is_over = False  # the answer has ended
        self.is_dropped = False
        self.is_paused = False
        self.diagnostics = LastDiagnostics()  # the warnings of the shard
        # The rows that the merge has not taken yet; their size is `fresh_bytes`.
        self.fresh: list[bytes] = []
        self.fresh_bytes = 0

    def data_received(self, data: bytes) -> bytes | None:
        """Take bytes; the rows in them wait for the merge."""
        rows = self.scanner.feed(data)
        if rows and not self.is_dropped:
            self.fresh += rows
            self.fresh_bytes += sum(map(len, rows))
            # The rest stays in the server's socket, so memory here is bounded for each shard.
            if self.fresh_bytes > WAITING_BYTES_MAX:
                self.pause(on=True)
            self._owner.wake()
        return self.scanner.rest if self.scanner.done else None

    def bite(self, count: int) -> list[bytes]:
        """Return and remove the next rows, *count* at most."""
        rows = self.fresh[:count]
        del self.fresh[:count]
        self.fresh_bytes -= sum(map(len, rows))
        return rows

    def answer_completed(self) -> None:
        """Note that the answer is complete."""
        self.is_over = True
        self.pause(on=False)
        self._owner.wake()

    def connection_lost(self, error: BackendLost) -> None:
        """Note that the rest of the answer will not come."""
        self.is_over = True
        self.failure = error
        self._owner.wake()

    def pause(self, *, on: bool) -> None:
        """Stop or resume reading from the server."""
        if on is not self.is_paused:
            self.is_paused = on
            if on:
                self.backend.link.pause_reading()
            else:
                self.backend.link.resume_reading()


class _Gather:
    def __init__(
        self,
        context: SessionContext,
        database: str | None,
        shards: Sequence[ShardRuntime],
        statement: Statement,
        route: Merge,
        texts: Texts,
        reply: RowSink,
    ) -> None:
        self._executor = context.executor
        self._connections = context.connections
        self._state = context.state
        self._link = context.link
        self._database = database
        self._shards = shards
        self._statement = statement
        self._reply = reply
        self._texts = texts
        # The bytes of groups that have to be sorted once all of them are known.
        memory_bytes = context.config.merge_memory_bytes
        self._query: RowsQuery | GroupsQuery = (
            GroupsQuery(texts, memory_bytes, exact=reply.binary)
            if route.in_groups
            else RowsQuery(texts, exact=reply.binary)
        )
        self._definitions: list[bytes] = []
        self._parts: list[_Part] = []
        self._merge: _Rows | None = None
        self._event = asyncio.Event()
        self._slices = Slices()
        self._settled: set[int] = set()
        self._ended: set[int] = set()  # to the merge
        self._status = 0
        self._warnings = 0
        self._diagnostics = LastDiagnostics()  # of a shard's statement after the merge
        self.has_written = False
        # The shard of the current query, or the one whose answer ended the attempt.
        self.shard = shards[0]

    # --- calls from the parts and the client's link ------------------------------------------

    def wake(self) -> None:
        """Make the loop look at the parts again."""
        self._event.set()

    def client_writable(self) -> None:
        """Continue after the client caught up."""
        self._event.set()

    def ending(self, error: BackendUnavailable | BackendLost | BackendError) -> Ending:
        """Return how an attempt that raised *error* ended."""
        if isinstance(error, BackendError):
            return ending_of(error)
        return Ending.BROKE_OFF if self._parts else Ending.UNSENT

    # --- the run itself -----------------------------------------------------------------------

    async def run(self) -> None:
        """Query the shards, merge the rows and answer; every connection is settled, also after an error."""
        executor, connections = self._executor, self._connections
        shape = self._statement.shape
        taken: list[tuple[ShardRuntime, Backend]] = []
        try:
            # The first shard describes the answer for all of them, before the others get
            # any query.
            backend = await connections.acquire(self.shard, self._database, shape)
            taken.append((self.shard, backend))
            sql, self._definitions = await ask_first(backend, self._texts, self._query)
            for shard in self._shards[1:]:
                self.shard = shard
                backend = await connections.acquire(shard, self._database, shape)
                taken.append((shard, backend))
            await spread_insert_id(self._state, [backend for _, backend in taken], shape)
        except BaseException:
            for shard, backend in taken:
                connections.release(shard, backend)
            raise
        packet = query(sql)
        for index, (shard, backend) in enumerate(taken):
            part = _Part(self, index, shard, backend)
            self._parts.append(part)
            connections.active[backend] = shard
            backend.send(packet, part)
        executor.current = self
        try:
            await self._merge_all()
        finally:
            await self._stop()
        if self._merge is not None and self._merge.computed is not None:
            await self._compute(self._merge.computed)
        diagnostics = self._diagnostics
        # In the order of the shards; the columns are those of the first shard that has any.
        for part in reversed(self._parts):
            diagnostics.columns = part.diagnostics.columns or diagnostics.columns
            diagnostics.rows = [*part.diagnostics.rows, *diagnostics.rows]
        if diagnostics.rows:
            self._state.answered_at, self._state.diagnostics = None, diagnostics
        self._reply.end_of_rows(status=self._status, warnings=self._warnings)

    async def _merge_all(self) -> None:
        merge: _Rows | None = None
        while True:
            self._event.clear()
            await self._settle_ended()
            if merge is None:
                merge = self._begin()
            if merge is None:
                await self._wait()
                continue
            self._feed(merge)
            # Only rows that no row of another shard can precede.
            rows = merge.next_rows()
            if rows:
                self._write(rows)
            if merge.is_complete:
                if not (self.has_written or merge.computed):
                    self._write([])
                return
            for part in self._parts:
                waiting_bytes = part.fresh_bytes + merge.waiting_bytes[part.index]
                # There are two bounds, so that a server is not stopped and started at each row.
                if waiting_bytes <= _RESUME_BYTES or waiting_bytes > WAITING_BYTES_MAX:
                    part.pause(on=waiting_bytes > WAITING_BYTES_MAX and not part.is_over)
            if merge.has_more or any(part.fresh for part in self._parts):
                await self._breathe()
            else:
                await self._wait()

    def _feed(self, merge: _Rows) -> None:
        """Give the merge the next rows of each shard. Raises Unsupported."""
        count = max(_BITE_ROWS // len(self._parts), 1)
        for part in self._parts:
            # Rows in the merge already wait for another shard, and delay no turn.
            if part.fresh:
                merge.feed(part.index, part.bite(count))
            if part.index in self._settled and not part.fresh and part.index not in self._ended:
                self._ended.add(part.index)
                merge.end(part.index)

    async def _compute(self, groups: ComputedGroups) -> None:
        """Let a shard compute the expressions over the merged values, and answer."""
        for batch in groups.batches():
            try:
                answer, warnings = await ask_stage(
                    self._executor,
                    self._shards[0],
                    self._database,
                    groups.question(batch),
                    self._statement.shape,
                    self._diagnostics,
                )
            except BackendError as error:
                if groups.is_late:
                    # The error may come from a group whose row the client would never have seen.
                    raise Unsupported("computing all groups over several shards") from error
                raise
            columns = [parse_column_definition(each) for each in answer.columns]
            rows = groups.answer(batch, columns, answer.rows)
            self._warnings += warnings
            if rows:
                self._write(rows)
            self._executor.current = self
            await self._breathe()
        for rows in groups.rest():
            if rows:
                self._write(rows)
            await self._breathe()
        if not self.has_written:
            self._write([])
        self._executor.current = None

    async def _breathe(self) -> None:
        """Let other sessions run and, if the client is slow, wait until it has caught up."""
        await self._slices.breathe()
        while self._link.blocked and not self._link.closed:
            self._event.clear()
            await self._event.wait()
            self._slices.begin()

    async def _wait(self) -> None:
        """Wait for rows and, if the client is slow, for the client."""
        while True:
            await self._event.wait()
            self._slices.begin()
            if not self._link.blocked or self._link.closed:
                return
            self._event.clear()

    def _write(self, rows: list[bytes]) -> None:
        if not self.has_written:
            self.has_written = True
            self._reply.head(self._definitions)
        self._reply.more_rows(rows)

    def _begin(self) -> _Rows | None:
        """Make the merge once a shard has sent its columns and none has failed immediately."""
        # An error comes in place of the columns, and must be known before the client has a
        # byte.
        if not all(part.scanner.head_complete for part in self._parts):
            return None
        columns = [parse_column_definition(each) for each in self._parts[0].scanner.columns]
        self._definitions = self._query.definitions(
            self._definitions, self._parts[0].scanner.columns
        )
        merge = self._merge = self._query.merger(len(self._parts), columns)
        return merge

    async def _settle_ended(self) -> None:
        """Give back the connections of complete answers; raise any error in them."""
        for part in self._parts:
            if not part.is_over or part.index in self._settled:
                continue
            self.shard = part.shard
            await self._settle(part)
            if part.failure is not None:
                raise part.failure
            error = part.scanner.error
            if error is not None:
                raise error.exception()

    async def _settle(self, part: _Part) -> None:
        ok = part.scanner.ok
        if part.failure is None and ok is not None:
            self._status |= ok.status & Status.IN_TRANS
            self._warnings += ok.warnings
            if ok.warnings:
                # If the connection breaks now, the next statement finds it broken.
                with suppress(BackendError, BackendLost):
                    await self._connections.take_warnings(
                        part.shard, part.backend, part.diagnostics
                    )
        self._settled.add(part.index)
        self._executor.settle(part, self._statement.shape)
        self._executor.current = self

    async def _stop(self) -> None:
        """End the answers that are still under way."""
        executor = self._executor
        reach = self._texts.reach
        is_short = reach is not None and reach <= _DRAIN_ROWS_MAX
        try:
            for part in self._parts:
                # Later rows are read and dropped, so that the connection can be used again.
                part.is_dropped = True
                if part.is_over or part.index in self._settled:
                    continue
                # Reading a short answer to its end takes less time than killing its connection and opening another one. A
                # connection of the transaction must not be lost at all.
                if is_short or part.shard in executor.branches.held:
                    part.pause(on=False)
                else:
                    self._settled.add(part.index)
                    self._connections.abandon(part.shard, part.backend)
            while True:
                self._event.clear()
                for part in self._parts:
                    if part.is_over and part.index not in self._settled:
                        await self._settle(part)
                if len(self._settled) == len(self._parts):
                    return
                await self._event.wait()
        finally:
            executor.current = None


async def ask_stage(
    executor: Executor,
    shard: ShardRuntime,
    database: str | None,
    sql: bytes,
    shape: Shape,
    diagnostics: LastDiagnostics,
) -> tuple[BufferedAnswer, int]:
    """Run *sql* on a shard over the rows of a `proxy.merge.stage`; return its answer and the number of warnings.

    diagnostics: the warnings are added to them. Warnings about the stage itself are neither added nor counted.

    Raises as `Executor.ask`.
    """
    last = LastDiagnostics()
    answer = await executor.ask([shard], database, query(sql), shape, diagnostics=last)
    assert answer.ok is not None
    warnings = of_the_client(last.rows)
    diagnostics.columns = diagnostics.columns or last.columns
    diagnostics.rows = [*diagnostics.rows, *warnings]
    return answer, answer.ok.warnings - len(last.rows) + len(warnings)
