"""Writes what became of messages: many in one statement, without making the work wait."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from asyncmy.errors import MySQLError

from .outcomes import Outcome, Result
from .session import Session
from .table import ERROR_MAX, Table


AT_ONCE = 500  # ids in one statement

log = logging.getLogger("streamfrom_worker")


class Completer:
    """Gathers results while a statement is on its way, and writes them with the next one."""

    def __init__(self, session: Session, table: Table) -> None:
        self._session = session
        self._table = table
        self._acked: list[Any] = []
        self._writing: list[Any] = []
        self._returned: list[Any] = []
        self._others: list[Result] = []
        self._news = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    def add(self, result: Result) -> None:
        """Have *result* written soon."""
        if result.outcome is Outcome.ACKED:
            self._acked.append(result.id)
        elif result.outcome is Outcome.RETURNED:
            self._returned.append(result.id)
        else:
            self._others.append(result)
        self._is_idle.clear()
        self._news.set()

    def is_done(self, ident: Any) -> bool:
        """Return whether the acknowledgement of a message is yet to be written."""
        return ident in self._acked or ident in self._writing

    async def written(self) -> None:
        """Return when all that was added is written."""
        await self._is_idle.wait()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._acked or self._returned or self._others:
                await self._write()
            if not self._news.is_set():
                self._is_idle.set()

    async def _write(self) -> None:
        acked, self._acked = self._acked[:AT_ONCE], self._acked[AT_ONCE:]
        self._writing = acked
        if acked:
            changed = await self._each(self._table.acknowledge, acked)
            if changed < len(acked):
                # Another worker was faster: a lease had ended before its work did.
                log.warning(
                    "messages were acknowledged before",
                    extra={"queue": self._table.name, "count": len(acked) - changed},
                )
        self._writing = []
        returned, self._returned = self._returned[:AT_ONCE], self._returned[AT_ONCE:]
        if returned:
            await self._each(self._table.give_back, returned)
        others, self._others = self._others, []
        for result in others:
            await self._reschedule(result)

    async def _each(self, statement: Any, ids: list[Any]) -> int:
        """Run *statement* for all ids; for each alone if the server refuses them together."""
        try:
            return (await self._session.run(statement(len(ids)), ids)).changed
        except MySQLError as error:
            if len(ids) == 1:
                log.error(  # noqa: TRY400 - the server's sentence says it all
                    "the server refuses a change of a message",
                    extra={"queue": self._table.name, "id": ids[0], "error": str(error)},
                )
                return 1
            return sum([await self._each(statement, [one]) for one in ids])

    async def _reschedule(self, result: Result) -> None:
        is_parked = result.outcome is Outcome.PARKED
        wait = [] if is_parked else [round((result.retry_after or 0.0) * 1e6)]
        error_text = [_text(result.error)] if self._table.has_last_error else []
        statement = self._table.reschedule(parked=is_parked)
        try:
            await self._session.run(statement, [*wait, *error_text, result.id])
        except MySQLError as error:
            # Its lease ends, and it comes again.
            log.error(  # noqa: TRY400 - as above
                "the server refuses to reschedule a message",
                extra={"queue": self._table.name, "id": result.id, "error": str(error)},
            )


def _text(error: BaseException | None) -> str | None:
    if error is None:
        return None
    said, name = str(error), type(error).__name__
    text = said if name in ("Retry", "Park") else f"{name}: {said}" if said else name
    return text[:ERROR_MAX]
