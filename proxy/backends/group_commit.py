"""Group commit of acks: the acks of many clients in one transaction, with an answer to each client.

A server flushes once for all that commit at one moment, but wakes a thread, parses, locks and commits for each of them. So
acks of one table that come while others are written are gathered, and written by one statement. A lone ack is
sent at once, without this module.

Three statements are sent in one write, so that no lock is held while the proxy does other work. A SELECT with `SKIP LOCKED`
locks the rows that are unacked and not locked by others, an UPDATE acknowledges them if they are complete, and a COMMIT follows. If
they are not, a second transaction acknowledges the free ones. A client whose messages are all among them gets the answer that they
are acknowledged. Any other ack is sent separately, because one of its rows is acked, deleted or locked. If the server refuses the
rows of an ack, the acks are halved until that one is alone, and is sent separately. If the transaction fails otherwise, every ack
is. So each ack gets the answer that it would have had alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from streamfrom.engine.messaging.acks.ack_writes import acknowledge_all
from streamfrom.engine.messaging.store.row_writes import Halves, is_of_rows
from streamfrom.engine.messaging.table.sql_names import lock_unacked
from streamfrom.proxy.backends.backend import checked
from streamfrom.proxy.backends.lock_session import store_answer
from streamfrom.proxy.errors import (
    AckUnknown,
    BackendError,
    BackendLost,
    PoolTimeout,
    ProxyError,
)
from streamfrom.proxy.wire.commands import query


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.proxy.backends.backend import Backend, ConnectionOwner
    from streamfrom.proxy.backends.pooling.pool import Pool
    from streamfrom.sqlparse_ext.statements import Value


# How many ids one ack may have; a larger ack is a batch already.
IDS_MAX: Final = 8
# Acks written by one statement. For each row the server looks its time up among those of all.
ACKS_MAX: Final = 100

_COMMIT: Final = query(b"COMMIT")


class Ack(Protocol):
    """One client's ack, from when it is gathered until it is answered, sent alone, or fails."""

    values: Sequence[Value]  # the messages as the statement names them
    ids: tuple[bytes, ...]  # the messages as literals, each once
    acked_ns: int  # when it came, by the client or by the proxy's clock
    is_left: bool  # its client is gone, or was informed that it was stopped
    is_stopped: bool  # it must not be sent separately

    def acknowledged(self) -> None:
        """Answer the client that all its messages are acknowledged."""

    def send_alone(self) -> None:
        """Send it by itself."""

    def runs_on(self, backend: Backend | None) -> None:
        """Note the connection that writes the ack, so that KILL finds it; None when it has ended."""

    def fail(self, error: Exception) -> None:
        """Answer the client with the error."""

    def interrupted(self) -> None:
        """Answer the client that the ack was stopped."""


def gathered(waiting: Iterable[Ack]) -> tuple[list[Ack], list[Ack]]:
    """Return the acks to write next, and the acks to write after them.

    Of two acks of the same message the first acknowledges it, and the second must find it acknowledged.
    """
    taken: list[Ack] = []
    later: list[Ack] = []
    ids: set[bytes] = set()
    for ack in waiting:
        if ack.is_left:
            continue
        if len(taken) < ACKS_MAX and ids.isdisjoint(ack.ids):
            ids.update(ack.ids)
            taken.append(ack)
        else:
            later.append(ack)
    return taken, later


@dataclass(eq=False)
class GroupCommit:
    """The acks of one table on one shard."""

    _pool: Pool
    # Of connections that have autocommit off, READ COMMITTED so that no gap is locked, and short waits for locks.
    _owner: ConnectionOwner
    _database: str
    _committed: Callable[
        [Sequence[Ack]], None
    ]  # called with acks that are committed, before their clients are answered
    _table: MessageTable = field(init=False)
    _waiting: list[Ack] = field(default_factory=list)
    _writing: asyncio.Task[None] | None = None
    _one_came: bool = False  # in this turn of the loop
    _turn: int = 0

    def has_others(self) -> bool:
        """Return whether a new ack can go with others; a lone one is sent at once."""
        if self._writing is not None or self._one_came:
            return True
        self._one_came = True
        asyncio.get_running_loop().call_soon(self._turn_over)
        return False

    def join(self, table: MessageTable, ack: Ack) -> None:
        """Take an ack of *table*, once `has_others` is true."""
        self._table = table
        self._waiting.append(ack)

    def _turn_over(self) -> None:
        self._one_came = False
        if self._waiting and self._writing is None:
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        backend: Backend | None = None
        try:
            while self._waiting:
                acks, self._waiting = gathered(self._waiting)
                if len(acks) == 1:
                    acks[0].send_alone()
                elif acks:
                    backend = await self._write_together(backend, acks)
        finally:
            self._writing = None
            if backend is not None:
                self._pool.release(backend)

    async def _write_together(
        self, backend: Backend | None, acks: Sequence[Ack]
    ) -> Backend | None:
        """Write *acks*, and answer each; return the connection if it can be used for more."""
        won: list[Ack] = []
        error: Exception | None = None
        failed = part = acks
        try:
            backend = backend or await self._pool.acquire(self._owner, self._database)
            # KILL ends an ack at once while no connection writes it: its client has the answer that nothing has changed.
            failed = acks = [ack for ack in acks if not ack.is_left]
            halves = Halves(acks)
            for ack in acks:
                ack.runs_on(backend)
            while part := halves.next():
                try:
                    acked = await self._commit(backend, part)
                except BackendError as refused:
                    if not is_of_rows(refused.code):
                        raise
                    halves.refuse(part, str(refused))
                else:
                    if acked:
                        self._committed(acked)
                    won += acked
        except AckUnknown as failure:
            error, failed = failure, part
        except PoolTimeout as failure:
            error = failure
        except ProxyError:
            pass  # nothing is committed, and each will get the error separately
        except Exception as failure:  # noqa: BLE001 - whatever it was, no client must wait forever
            error = failure
        if backend is not None:
            for ack in acks:
                ack.runs_on(None)
            if backend.in_transaction or backend.awaits_kill or backend.is_closed:
                self._pool.discard(backend)
                backend = None
        for ack in acks:
            if ack.is_left:
                continue
            if ack in won:
                ack.acknowledged()
            elif error is not None and ack in failed:
                ack.fail(error)
            else:
                ack.send_alone()
        return backend

    async def _commit(self, backend: Backend, acks: Sequence[Ack]) -> Sequence[Ack]:
        """Acknowledge in one transaction the messages that others do not lock; return the acks whose messages are all among them.

        Raises AckUnknown if the connection breaks; BackendError or BackendLost if nothing is acknowledged.
        """
        if await self._commit_all(backend, acks):
            return acks
        backend.in_transaction = True
        ids = [ident for ack in acks for ident in ack.ids]
        answer = await backend.query(lock_unacked(self._table, ids).sql)
        free = {
            self._table.id_literal(raw or b"") for (raw,), _ in store_answer(answer, 1).rows
        }
        won = [ack for ack in acks if free.issuperset(ack.ids)]
        if won:
            return won if await self._commit_all(backend, won) else []
        await backend.command(_COMMIT)
        backend.in_transaction = False
        return []

    async def _commit_all(self, backend: Backend, acks: Sequence[Ack]) -> bool:
        """Acknowledge in one transaction all messages of *acks*, or none if one is acked, gone or locked by others.

        The SELECT sets a variable for the UPDATE if all are free: another value each time, so that nothing is acknowledged
        after a SELECT that the server refuses. One write instead of two saves a fifth of the proxy's time for an ack.
        """
        moments = {ident: ack.acked_ns for ack in acks for ident in ack.ids}
        self._turn += 1
        lock, update = acknowledge_all(self._table, moments, self._turn)
        backend.check_open()
        backend.in_transaction = backend.has_residue = True
        try:
            answers = await backend.answers([query(lock), query(update), _COMMIT])
        except BackendLost as error:
            raise AckUnknown(str(error)) from error
        _, updated, commit = answers
        backend.in_transaction = commit.error is not None
        checked(answers)
        return updated.ok is not None and updated.ok.affected_rows == len(moments)
