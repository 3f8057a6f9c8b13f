"""Read large texts in threads, while the loop serves other sessions.

The functions that read a text are pure, so any thread may run them. No call in it holds the interpreter for more than 2
ms (`sqlparse_ext.text.chunks`); between calls the loop's thread can run. The session is busy as with any statement: the
client's next command waits, and `KILL QUERY` and `statement_timeout` end the reading, which stops at its next chunk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from streamfrom.proxy.fairness import Slices
from streamfrom.sqlparse_ext.cache import LongTemplate
from streamfrom.sqlparse_ext.text.chunks import (
    LARGE_TEMPLATE_BYTES,
    LARGE_TEXT_BYTES,
    between_chunks,
)


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.errors import StreamfromError
    from streamfrom.sqlparse_ext.statements import Statement


# How many texts are read at once; others wait their turn. More threads would be no faster, since
# one thread computes at a time, and each takes a share of the loop's time.
AT_ONCE: Final = 2

_Result = TypeVar("_Result")
_Parameters = ParamSpec("_Parameters")


def size_of(statement: Statement) -> int:
    """Return the cost of reading a statement, in bytes of literals. Bytes of its template take longer."""
    weight = LARGE_TEXT_BYTES // LARGE_TEMPLATE_BYTES
    return max(len(statement.sql), weight * len(statement.shape.template))


def readers() -> ThreadPoolExecutor:
    """Return the threads that all sessions of a process share."""
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="large-text")


class LargeTexts:
    """The large texts of one session.

    threads: the threads that `readers` made, shared with all sessions.
    """

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._under_way: asyncio.Future[object] | None = None
        self._error: StreamfromError | None = None

    async def parse(
        self, parse: Callable[[bytes, int | None], Statement], sql: bytes
    ) -> Statement:
        """Parse *sql*. Raises as *parse*, a method of `SessionTarget`, or the error given to `interrupt`."""
        if len(sql) <= LARGE_TEXT_BYTES:
            with suppress(LongTemplate):
                return parse(sql, LARGE_TEMPLATE_BYTES)
        return await self._in_thread(parse, sql, None)

    async def read(
        self,
        size: int,
        function: Callable[_Parameters, _Result],
        *args: _Parameters.args,
        **kwargs: _Parameters.kwargs,
    ) -> _Result:
        """Return the result of *function*, which reads a text of *size* bytes. Raises its error, or the one given to `interrupt`."""
        if size > LARGE_TEXT_BYTES:
            return await self._in_thread(function, *args, **kwargs)
        slices = Slices()
        result = function(*args, **kwargs)
        # A statement is read up to eight times. Other sessions get a turn in between.
        await slices.breathe()
        return result

    async def _in_thread(
        self,
        function: Callable[_Parameters, _Result],
        *args: _Parameters.args,
        **kwargs: _Parameters.kwargs,
    ) -> _Result:
        is_over = False

        def check() -> None:
            if is_over:
                raise _Abandoned

        context = copy_context()
        context.run(between_chunks.set, check)
        reading = self._threads.submit(lambda: context.run(function, *args, **kwargs))
        waiting = asyncio.wrap_future(reading)
        try:
            return await self._interruptible(waiting)
        finally:
            is_over = True

    async def pause(self, seconds: float) -> None:
        """Wait between two pieces of a statement's work. Raises the error given to `interrupt`."""
        await self._interruptible(asyncio.ensure_future(asyncio.sleep(seconds)))

    async def _interruptible(self, waiting: asyncio.Future[_Result]) -> _Result:
        self._under_way = waiting  # type: ignore[assignment]
        try:
            return await waiting
        except asyncio.CancelledError:
            error, self._error = self._error, None
            if error is None:
                raise
            raise error from None
        finally:
            waiting.cancel()
            self._under_way = None

    def interrupt(self, error: StreamfromError) -> bool:
        """End the reading under way with *error*; False if there is none."""
        if self._under_way is None or self._under_way.done():
            return False
        self._error = error
        self._under_way.cancel()
        return True


class _Abandoned(Exception):
    """No session waits for the text being read."""
