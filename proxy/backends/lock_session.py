"""The connection by which a member takes part in a shard's election, and writes as its dispatcher.

Conversations run one at a time, in the order of the calls. The time of a question is when its bytes are sent, so a wait
behind another conversation does not make a proof look younger than it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreAnswer
from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.wire import commands
from streamfrom.proxy.wire.binary_rows import row_types
from streamfrom.proxy.wire.resultset import parse_text_row, skip_lenenc


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation, StoreQuery
    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.backend import Backend


T = TypeVar("T")

_BEGIN: Final = commands.query(b"START TRANSACTION")
_COMMIT: Final = commands.query(b"COMMIT")
_ROLLBACK: Final = commands.query(b"ROLLBACK")


class LockSession:
    """*backend*, which no other session uses; `close` ends it and frees its locks.

    on_lost: called when the server has closed the connection.

    Every method raises BackendLost once the connection is gone.
    """

    def __init__(self, backend: Backend, on_lost: Callable[[], None]) -> None:
        self._backend = backend
        self._turn = asyncio.Lock()
        backend.on_lost = lambda _: on_lost()

    async def converse(self, conversation: Conversation[T]) -> tuple[T, int]:
        """Carry out a conversation whose statements each commit on their own.

        Return its result, and when its last question was sent, by the monotonic clock in nanoseconds.
        An exception of the conversation ends only that one.
        """
        async with self._turn:
            return await self._converse(conversation, [])

    async def transact(self, make: Callable[[], Conversation[T]]) -> tuple[T, int]:
        """When it is its turn, carry out the conversation from *make*: one transaction, which commits itself.

        Return as `converse`. Raises ServerRefused for a statement that is refused; its earlier work
        is undone.
        """
        async with self._turn:
            try:
                return await self._converse(make(), [_BEGIN])
            except ServerRefused:
                await self._backend.command(_ROLLBACK)
                raise

    async def ping(self) -> int:
        """Ping the server; return when, by the monotonic clock in nanoseconds."""
        async with self._turn:
            asked_ns = time.monotonic_ns()
            await self._backend.command(commands.PING)
            return asked_ns

    def close(self) -> None:
        """Close the connection at once; twice is fine."""
        self._backend.abort()

    async def _converse(
        self, conversation: Conversation[T], before: list[bytes]
    ) -> tuple[T, int]:
        asked_ns = time.monotonic_ns()

        async def ask(query: StoreQuery) -> StoreAnswer:
            nonlocal before, asked_ns
            begins, before = ([], before) if query.is_apart else (before, [])
            asked_ns = time.monotonic_ns()
            answers = await self._backend.pipeline([*begins, *packets_of(query)])
            return answer_of(query, answers[len(begins) :])

        result = await carry_out(conversation, ask)
        return result, asked_ns


async def carry_out(
    conversation: Conversation[T], ask: Callable[[StoreQuery], Awaitable[StoreAnswer]]
) -> T:
    """Return the result of a conversation. *ask* answers each question; a BackendError is the server's refusal."""
    try:
        query = next(conversation)
        while True:
            try:
                answer = await ask(query)
            except BackendError as error:
                query = conversation.throw(ServerRefused(error.code, str(error)))
            else:
                query = conversation.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result


def packets_of(query: StoreQuery) -> list[bytes]:
    """Return the commands of one write: the ones ahead, the statement, and its COMMIT."""
    packets = [commands.query(one.sql) for one in (*query.ahead, query)]
    # In one write with the statement: a claim is one round trip less, and no commit waits for us while rows
    # are locked.
    if query.commits:
        packets.append(_COMMIT)
    return packets


def answer_of(query: StoreQuery, answers: Sequence[BufferedAnswer]) -> StoreAnswer:
    """Return the server's answer to the statement among the commands of `packets_of`."""
    ahead = tuple(
        store_answer(answer, one.values)
        for one, answer in zip(query.ahead, answers, strict=False)
    )
    answer = store_answer(answers[len(ahead)], query.values)
    return replace(answer, ahead=ahead) if ahead else answer


def store_answer(answer: BufferedAnswer, values: int | None) -> StoreAnswer:
    """Return an answer as conversations read it: the first *values* columns decoded, None for all, the rest raw."""
    if answer.columns:
        values = len(answer.columns) if values is None else values
        rows = [_split(row, values) for row in answer.rows]
        return StoreAnswer(rows, types=row_types(answer.columns[values:]))
    return StoreAnswer(affected=0 if answer.ok is None else answer.ok.affected_rows)


def _split(row: bytes, values: int) -> tuple[tuple[bytes | None, ...], bytes]:
    end = skip_lenenc(row, 0, values)
    return tuple(parse_text_row(row[:end], values)), row[end:]
