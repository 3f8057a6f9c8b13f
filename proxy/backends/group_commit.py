"""Group commit of acks: the acks of many clients in one transaction, with an answer to each client.

A server flushes once for all that commit at one moment, but wakes a thread, parses, locks and commits for each of them. So
acks of one table that come while others are written are gathered, and written by one statement. An ack that comes alone is
sent at once, without this module.

A SELECT with `SKIP LOCKED` finds and locks the rows that are unacked and not locked by others, until the commit. A client
all of whose messages are among them gets the answer that they are acknowledged. Any other ack is sent by itself, since one of its
rows is acked, deleted or locked. Where the server refuses the rows of an ack, the acks are halved until that one is alone, and is
sent by itself. Where the transaction fails otherwise before its commit, every ack is. So each ack has the answer that it would
have had alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from streamfrom.engine.messaging.acks.ack_writes import acknowledge
from streamfrom.engine.messaging.store.refusals import is_of_rows
from streamfrom.engine.messaging.store.row_writes import Halves
from streamfrom.engine.messaging.table.sql_names import lock_unacked
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
# A lock that takes longer waits for a definition that is being changed, or for a server that hangs. Then each ack waits by itself.
PATIENCE_S: Final = 1.0

_COMMIT: Final = query(b"COMMIT")


class Ack(Protocol):
    """One client's ack, from when it is gathered until it is answered, sent alone, or fails.

    Attributes:
        values: the messages as the statement names them.
        ids: the messages as literals, each once.
        acked_ns: when it came, by the client or by the proxy's clock.
        is_left: its client is gone, or got the answer that it was stopped.
    """

    values: Sequence[Value]
    ids: tuple[bytes, ...]
    acked_ns: int
    is_left: bool

    def acknowledged(self) -> None:
        """Answer the client that all its messages are acknowledged."""

    def send_alone(self) -> None:
        """Send it by itself."""

    def runs_on(self, backend: Backend | None) -> None:
        """Note the connection that writes the ack, so that KILL finds it; None when it has ended."""

    def fail(self, error: Exception) -> None:
        """Answer the client with what went wrong."""


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


class GroupCommit:
    """The acks of one table on one shard.

    owner: the owner of its connections, which have autocommit off, and READ COMMITTED so that no gap is locked.
    committed: called with acks that are committed, before their clients are answered.
    """

    def __init__(
        self,
        pool: Pool,
        owner: ConnectionOwner,
        database: str,
        committed: Callable[[Sequence[Ack]], None],
    ) -> None:
        self._pool = pool
        self._owner = owner
        self._database = database
        self._committed = committed
        self._table: MessageTable
        self._waiting: list[Ack] = []
        self._writing: asyncio.Task[None] | None = None
        self._one_came = False  # in this turn of the loop

    def has_others(self) -> bool:
        """Return whether an ack that comes now can go with others; one that comes alone is sent at once."""
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
        except (ProxyError, TimeoutError):
            pass  # nothing is committed, and each will meet it by itself
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
        """Acknowledge in one transaction the rows that are not locked by others.

        Return the acks whose messages are all among them.

        A transaction that fails otherwise than by the UPDATE leaves `in_transaction` set.

        Raises:
            AckUnknown: the connection broke during the COMMIT.
            BackendError, BackendLost, TimeoutError: nothing is acknowledged.
        """
        table = self._table
        backend.in_transaction = True
        async with asyncio.timeout(PATIENCE_S):
            ids = [ident for ack in acks for ident in ack.ids]
            answer = await backend.query(lock_unacked(table, ids).sql)
        free = {table.id_literal(raw or b"") for (raw,), _ in store_answer(answer, 1).rows}
        won = [ack for ack in acks if free.issuperset(ack.ids)]
        packets = [_COMMIT]
        if won:
            moments = {ident: ack.acked_ns for ack in won for ident in ack.ids}
            # In one write: no lock waits for us. Where the UPDATE is refused, the COMMIT ends what has changed nothing.
            packets.insert(0, query(acknowledge(table, moments)))
        try:
            *_, commit = answers = await backend.answers(packets)
        except BackendLost as error:
            raise AckUnknown(str(error)) from error
        backend.in_transaction = commit.error is not None
        for one in answers:
            if one.error is not None:
                raise one.error.exception()
        return won
