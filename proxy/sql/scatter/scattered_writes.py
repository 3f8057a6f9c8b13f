"""Statements that several shards run as one: writes in parts, and DDL everywhere.

A write on several shards takes effect on all of them or on none, as far as commits in sequence can guarantee it. Outside a
transaction the write gets one of its own. Inside a transaction a savepoint on each shard undoes the parts that succeeded
when another part fails.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from streamfrom.proxy.backends.backend import LastDiagnostics
from streamfrom.proxy.errors import (
    BackendError,
    BackendLost,
    BackendUnavailable,
    ProxyError,
    ReturningTooLarge,
)
from streamfrom.proxy.execution.retry_rules import Ending, ending_of
from streamfrom.proxy.execution.session_connections import named
from streamfrom.proxy.execution.session_state import SessionState, leaves_residue
from streamfrom.proxy.execution.session_tracking import note_insert_ids, spread_insert_id
from streamfrom.proxy.execution.transaction import ROLLS_BACK
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.resultset import Ok, parse_text_row, row_info
from streamfrom.sqlparse_ext.statements import Shape, Statement, Uses


if TYPE_CHECKING:
    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.executor import Executor
    from streamfrom.proxy.execution.prepared_execution import Packet
    from streamfrom.proxy.execution.reply import Reply

    AfterOthers: TypeAlias = Callable[[int], bytes]
    Part: TypeAlias = bytes | Packet | AfterOthers
    _Warning: TypeAlias = tuple[bytes | None, ...]


_SAVEPOINT: Final = query(b"SAVEPOINT streamfrom_part")
_ROLLBACK_TO: Final = query(b"ROLLBACK TO SAVEPOINT streamfrom_part")
_NUMBER: Final = re.compile(rb"\d+")
_WARNINGS: Final = re.compile(rb"Warnings: \d+")


@dataclass(frozen=True, slots=True)
class MergedOk:
    """The OKs of several shards as the one OK of a server."""

    answers: tuple[Ok, ...]
    is_insert: bool = False  # the statement is an INSERT or REPLACE
    # The answer of each shard to a write with RETURNING; empty for every other statement.
    returned: tuple[BufferedAnswer, ...] = ()

    @property
    def affected(self) -> tuple[int, ...]:
        """The number of rows that each part changed; with RETURNING the number of its rows, since its OK counts none."""
        if self.returned:
            return tuple(len(answer.rows) for answer in self.returned)
        return tuple(ok.affected_rows for ok in self.answers)

    @property
    def affected_rows(self) -> int:
        """The affected rows of all shards."""
        return sum(self.affected)

    @property
    def last_insert_id(self) -> int:
        """The first insert id that a shard generated."""
        return next((ok.last_insert_id for ok in self.answers if ok.last_insert_id), 0)

    @property
    def warnings(self) -> int:
        """The warnings of all shards, at most 65,535, the most that two bytes hold."""
        return min(sum(ok.warnings for ok in self.answers), 0xFFFF)

    @property
    def info(self) -> bytes:
        """The text of the OK, such as `Records: 3  Duplicates: 0  Warnings: 0`, with the numbers summed."""
        infos = [self._info(ok) for ok in self.answers]
        if not infos or not all(infos):
            return b""
        # The text of the first server, with the sums in place of its numbers.
        sums = [
            sum(map(int, column)) for column in zip(*map(_NUMBER.findall, infos), strict=True)
        ]
        numbers = iter(sums)
        return _NUMBER.sub(lambda _: b"%d" % next(numbers), infos[0])

    async def tell(
        self, reply: Reply, places: Sequence[Sequence[int]] = (), insert_id: int = 0
    ) -> None:
        """Answer the client. *places*: as in `WriteParts`. *insert_id*: the first that the proxy gave, 0 for none."""
        if self.returned:
            rows = _in_order([answer.rows for answer in self.returned], places)
            await reply.returned(self.returned[0].columns, rows, warnings=self.warnings)
            return
        reply.ok(
            affected_rows=self.affected_rows,
            last_insert_id=insert_id or self.last_insert_id,
            warnings=self.warnings,
            info=self.info,
        )

    @property
    def session_state(self) -> bytes:
        """The session state of the last OK."""
        return self.answers[-1].session_state

    def _info(self, ok: Ok) -> bytes:
        if ok.info or not self.is_insert:
            return ok.info
        # A server sends no text for a single row; here the row is one of several.
        return row_info(ok.affected_rows, ok.warnings)


def _in_order(parts: Sequence[Sequence[bytes]], places: Sequence[Sequence[int]]) -> list[bytes]:
    """Return the rows of RETURNING: in the statement's order if each of its rows gave one, else part by part."""
    if list(map(len, parts)) != list(map(len, places)):
        return [row for part in parts for row in part]
    rows = [b""] * sum(map(len, places))
    for part, numbers in zip(parts, places, strict=True):
        for row, number in zip(part, numbers, strict=True):
            rows[number] = row
    return rows


async def write_parts(
    executor: Executor,
    state: SessionState,
    database: str | None,
    parts: Sequence[tuple[ShardRuntime, Part]],
    shape: Shape,
    returned_bytes_max: int,
) -> MergedOk:
    """Run the parts of a write and return their OKs; all parts take effect, or none does.

    Outside a transaction the write gets one of its own, and waits for a shard like any other statement. Before it waits, the
    parts that ran are undone. A part may be a function that makes the command from the number of rows that the earlier parts
    have affected.

    returned_bytes_max: the bytes that the rows of RETURNING may take; they are kept until all parts have run.

    Raises as any statement, and:
        ReturningTooLarge: the rows of RETURNING take more; nothing has taken effect.
        PartialCommit: outside a transaction, some shards have committed, and the error names them.
    """
    own = not executor.branches.in_transaction and state.settings.autocommit
    retries = executor.connections.retries(shape)
    while True:
        try:
            return await _write_parts(
                executor, state, database, parts, shape, returned_bytes_max, own=own
            )
        except (BackendUnavailable, BackendError) as error:
            # The write took effect nowhere: no COMMIT was sent, or the first one was refused.
            ending = (
                Ending.UNSENT if isinstance(error, BackendUnavailable) else ending_of(error)
            )
            if not await retries.again(ending, *(shard for shard, _ in parts)):
                raise


async def _write_parts(
    executor: Executor,
    state: SessionState,
    database: str | None,
    parts: Sequence[tuple[ShardRuntime, Part]],
    shape: Shape,
    returned_bytes_max: int,
    *,
    own: bool,
) -> MergedOk:
    branches = executor.branches
    # Also inside a transaction: without autocommit this statement may be the one that opens it.
    branches.entered()
    try:
        # Always in the order of the shards: otherwise two sessions could each hold a connection that the
        # other one waits for.
        taken: list[tuple[ShardRuntime, Backend, bytes | AfterOthers]] = []
        for shard, part in parts:
            backend = await executor.connections.acquire(shard, database, shape)
            data = (
                part
                if callable(part)
                else await executor.connections.bytes_for(shard, backend, part)
            )
            taken.append((shard, backend, data))
        await spread_insert_id(state, [backend for _, backend, _ in taken], shape)
        answers = await _run_parts(executor, state, taken, returned_bytes_max, undo=not own)
    except BaseException as error:
        if own or _undid_everything(error):
            await branches.rollback()
        raise
    oks = tuple(answer.ok for answer in answers if answer.ok is not None)
    assert len(oks) == len(answers), "a write that was not refused ends with OK"
    for (shard, backend, _), ok in zip(taken, oks, strict=True):
        backend.in_transaction = True
        backend.has_residue = backend.has_residue or leaves_residue(shape, ok)
        branches.held[shard] = backend
    told = [
        (backend, ok.last_insert_id) for (_, backend, _), ok in zip(taken, oks, strict=True)
    ]
    await note_insert_ids(state, told, shape)
    if own:
        await branches.commit()
    returned = answers if shape.uses & Uses.RETURNING else ()
    return MergedOk(oks, is_insert=shape.insert is not None, returned=tuple(returned))


async def _run_parts(
    executor: Executor,
    state: SessionState,
    parts: Sequence[tuple[ShardRuntime, Backend, bytes | AfterOthers]],
    returned_bytes_max: int,
    *,
    undo: bool,
) -> list[BufferedAnswer]:
    # One after another, always in the order of the shards. Otherwise two writes could each lock a row that the other waits
    # for, on different shards, and no server detects such a deadlock.
    answers: list[BufferedAnswer] = []
    diagnostics = LastDiagnostics()
    state.answered_at, state.diagnostics = None, diagnostics
    affected, bytes_left = 0, returned_bytes_max
    try:
        for shard, backend, part in parts:
            data = part(affected) if callable(part) else part
            # Sent in one write. Outside a client's transaction ROLLBACK undoes the parts, and no
            # savepoint is needed.
            packets = [_SAVEPOINT, data] if undo else [data]
            *_, answer = await executor.connections.pipeline(
                shard, backend, packets, bytes_left
            )
            bytes_left -= answer.bytes
            if bytes_left < 0:
                raise ReturningTooLarge(returned_bytes_max)  # noqa: TRY301
            answers.append(answer)
            ok = answer.ok
            if ok is not None:
                affected += ok.affected_rows
                if ok.warnings:
                    await executor.connections.take_warnings(shard, backend, diagnostics)
    except (BackendError, BackendLost, ReturningTooLarge) as error:
        if isinstance(error, BackendError):
            shard, backend, _ = parts[len(answers)]
            with suppress(BackendLost):
                await executor.connections.take_warnings(shard, backend, diagnostics)
        if undo and not _undid_everything(error):
            for _, backend, _ in parts[: len(answers) + 1]:
                # A shard that is gone has undone its part, which breaks the whole transaction.
                with suppress(BackendLost):
                    await backend.command(_ROLLBACK_TO)
        raise
    return answers


def _undid_everything(error: BaseException) -> bool:
    """True if a server has rolled back the whole transaction, and not only the statement."""
    return isinstance(error, BackendError) and error.code in ROLLS_BACK


async def run_everywhere(
    executor: Executor,
    state: SessionState,
    database: str | None,
    shards: Sequence[ShardRuntime],
    statement: Statement,
) -> MergedOk:
    """Run one statement on every shard in turn and stop at the first refusal. A warning that all shards give counts once.

    DDL cannot be undone: changes made before a refusal stay, and the BackendError names the shards.
    """
    sent = query(statement.sql)
    if len(shards) == 1:
        # The diagnostics area stays on the shard's connection, where GET DIAGNOSTICS finds it.
        answer = await executor.ask(shards, database, sent, statement.shape)
        assert answer.ok is not None
        return MergedOk((answer.ok,))
    oks = []
    diagnostics = LastDiagnostics()
    known: Counter[_Warning] = Counter()
    for shard in shards:
        before = diagnostics.rows
        try:
            answer = await executor.ask(
                [shard], database, sent, statement.shape, diagnostics=diagnostics
            )
            assert answer.ok is not None
            own = diagnostics.rows[len(before) :]
            new = _new(own, named(shard, database), known)
            diagnostics.rows = [*before, *new]
            oks.append(_with_fewer_warnings(answer.ok, len(own) - len(new)))
        except ProxyError as error:
            if isinstance(error, BackendError):
                state.answered_at, state.diagnostics = None, diagnostics
            if oks:
                done = ", ".join(str(s) for s in shards[: len(oks)])
                error.args = (f"{error} (shard {shard}; done before on {done})",)
            raise
    if diagnostics.rows:
        state.answered_at, state.diagnostics = None, diagnostics
    return MergedOk(tuple(oks))


def _new(rows: Sequence[bytes], database: str | None, known: Counter[_Warning]) -> list[bytes]:
    """Return the warnings of a shard, without those that earlier shards gave as often, and add them to *known*.

    database: the shard's database, which may have another name than theirs.
    """
    qualifier = f"'{database}.".encode()
    own: Counter[_Warning] = Counter()
    new: list[bytes] = []
    for row in rows:
        *level_and_code, message = parse_text_row(row, 3)
        warning = (*level_and_code, (message or b"").replace(qualifier, b"'"))
        own[warning] += 1
        if own[warning] > known[warning]:
            known[warning] += 1
            new.append(row)
    return new


def _with_fewer_warnings(ok: Ok, fewer: int) -> Ok:
    warnings = ok.warnings - fewer
    return ok._replace(
        warnings=warnings, info=_WARNINGS.sub(b"Warnings: %d" % warnings, ok.info)
    )
