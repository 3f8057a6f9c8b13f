"""Statements that several shards run as one: writes in parts, and DDL everywhere.

A write that reaches several shards takes effect on all of them or on none, as far as commits
in sequence can promise it: outside a transaction it gets one of its own, inside one a
savepoint on each shard undoes the parts that had succeeded when another failed.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from proxy.errors import BackendError, BackendLost, ProxyError
from proxy.session_state import leaves_residue
from proxy.transaction import ROLLS_BACK
from proxy.wire.commands import query


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from proxy.backend import Answer, Backend
    from proxy.executor import Executor
    from proxy.session_state import SessionState
    from proxy.shard import ShardRuntime
    from proxy.wire.resultset import Ok
    from sqlparse_ext.statements import Shape, Statement


_SAVEPOINT: Final = query(b"SAVEPOINT streamfrom_part")
_ROLLBACK_TO: Final = query(b"ROLLBACK TO SAVEPOINT streamfrom_part")
_NUMBER: Final = re.compile(rb"\d+")


@dataclass(frozen=True, slots=True)
class Merged:
    """The answers of several shards, and what one server would have said."""

    answers: tuple[Ok, ...]

    @property
    def affected_rows(self) -> int:
        """The sum."""
        return sum(ok.affected_rows for ok in self.answers)

    @property
    def last_insert_id(self) -> int:
        """The first one generated."""
        return next((ok.last_insert_id for ok in self.answers if ok.last_insert_id), 0)

    @property
    def warnings(self) -> int:
        """The sum, as far as two bytes can say it."""
        return min(sum(ok.warnings for ok in self.answers), 0xFFFF)

    @property
    def info(self) -> bytes:
        """`Records: 3  Duplicates: 0  Warnings: 0` with the numbers summed."""
        infos = [ok.info for ok in self.answers]
        if not infos or not all(infos):
            return b""
        sums = [
            sum(map(int, column)) for column in zip(*map(_NUMBER.findall, infos), strict=True)
        ]
        numbers = iter(sums)
        return _NUMBER.sub(lambda _: b"%d" % next(numbers), infos[0])


async def write_parts(
    executor: Executor,
    state: SessionState,
    database: str | None,
    parts: Sequence[tuple[ShardRuntime, bytes]],
    shape: Shape,
) -> Merged:
    """Run a write's parts side by side; all of them take effect, or none.

    Raises:
        BackendError: a part was refused; the other parts are undone.
        BackendUnavailable, BackendLost, PoolTimeout: as for any statement.
        PartialCommit: outside a transaction only, and then as it says.
    """
    branches = executor.branches
    own_transaction = not branches.in_transaction and state.settings.autocommit
    # Inside one too: without autocommit this statement may be the one that opens it.
    branches.entered()
    try:
        # In the order of the shards, always: two sessions that each hold a connection the
        # other one waits for would otherwise be possible.
        taken = [
            (await executor.take_patiently(shard, database, shape), sql) for shard, sql in parts
        ]
        answers = await _run_parts(taken, undo=not own_transaction)
    except BaseException as error:
        if own_transaction or _undid_everything(error):
            await branches.rollback()
        raise
    for (shard, _), (backend, _), ok in zip(parts, taken, answers.answers, strict=True):
        backend.in_transaction = True
        backend.has_residue = backend.has_residue or leaves_residue(shape, ok)
        branches.held[shard] = backend
    if answers.last_insert_id:
        state.last_insert_id = answers.last_insert_id
    if own_transaction:
        await branches.commit()
    return answers


async def _run_parts(parts: Sequence[tuple[Backend, bytes]], *, undo: bool) -> Merged:
    async def run(backend: Backend, sql: bytes) -> Answer:
        packets = [_SAVEPOINT, query(sql)] if undo else [query(sql)]
        return (await backend.pipeline(packets))[-1]

    results = await asyncio.gather(
        *(run(backend, sql) for backend, sql in parts), return_exceptions=True
    )
    failure = next((r for r in results if isinstance(r, BaseException)), None)
    if failure is not None:
        if undo and not _undid_everything(failure):
            for backend, _ in parts:
                # One that is gone has undone its part, and with it the whole transaction.
                with suppress(BackendLost):
                    await backend.command(_ROLLBACK_TO)
        raise failure
    return Merged(tuple(_oks(results)))


def _undid_everything(error: BaseException) -> bool:
    """True when a server has rolled back the transaction rather than the statement."""
    return isinstance(error, BackendError) and error.code in ROLLS_BACK


def _oks(answers: Iterable[object]) -> Iterable[Ok]:
    for answer in answers:
        ok = getattr(answer, "ok", None)
        assert ok is not None, "a write that was not refused ends with OK"
        yield ok


async def run_everywhere(
    executor: Executor,
    database: str | None,
    shards: Sequence[ShardRuntime],
    statement: Statement,
) -> Merged:
    """Run one statement on every shard in turn and stop at the first that refuses.

    DDL cannot be undone: what ran before a refusal stays, and the error says where.

    Raises:
        BackendError: with the words of the shard that refused, and where it had succeeded.
    """
    oks = []
    for shard in shards:
        backend = await executor.take_patiently(shard, database, statement.shape)
        try:
            answer = await backend.run(statement.sql)
            assert answer.ok is not None
            oks.append(answer.ok)
            executor.follow(shard, backend, statement.shape, answer.ok, answer.ok.trackers)
        except ProxyError as error:
            executor.give_back(shard, backend)
            if oks:
                done = ", ".join(str(s) for s in shards[: len(oks)])
                error.args = (f"{error} (shard {shard}; done before on {done})",)
            raise
    return Merged(tuple(oks))
