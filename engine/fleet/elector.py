"""The thin shell of one shard's election: carries out what `engine.fleet.election` decides.

An event is handled in the caller's turn of the loop. What the server must answer runs as tasks, on one
connection at a time; one timer wakes the election when something is due by itself.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, assert_never

from streamfrom.engine.clock import WakeTimer
from streamfrom.engine.errors import StoreError, TableGone
from streamfrom.engine.fleet.directory import Directory, Member
from streamfrom.engine.fleet.election import (
    AcquireLock,
    Answered,
    BeginDispatch,
    Connect,
    Connected,
    ConnectionLost,
    Disconnect,
    Drained,
    Elapsed,
    Election,
    LockGranted,
    LockHold,
    LockNotGranted,
    LookAround,
    Ping,
    Resign,
    TermRefused,
    TermWritten,
    TurnedReadOnly,
    Withhold,
    WriteTerm,
)
from streamfrom.engine.fleet.lock_connection import (
    NO_SUCH_TABLE,
    READ_ONLY,
    LockLost,
    MemberExists,
    NotWritable,
    acquire,
    enroll,
    forget,
    join,
    keep,
    read_directory,
    settings,
    write_term,
)
from streamfrom.engine.messaging.store.conversation import Conversation, ServerRefused
from streamfrom.sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from streamfrom.engine.fleet.directory import DirectoryRead, MemberDifferences
    from streamfrom.engine.fleet.election import ElectionAction, ElectionEvent


T = TypeVar("T")

log = logging.getLogger(__name__)

# A stop waits no longer for a server that does not answer.
LEAVE_TIMEOUT_S: Final = 2.0


class ElectionSession(Protocol):
    """The connection for the lock. Every method raises a StreamfromError once it is gone."""

    async def converse(self, conversation: Conversation[T]) -> tuple[T, int]:
        """Carry a conversation out; return its result, and when its last question was sent."""

    async def transact(self, make: Callable[[], Conversation[T]]) -> tuple[T, int]:
        """Carry out, once it is its turn, what *make* returns, as one transaction; return as `converse`."""

    async def ping(self) -> int:
        """Ask for a sign of life; return when."""

    def close(self) -> None:
        """Close it at once; twice is fine."""


class Tables(Protocol):
    """Who dispatches a shard's message tables, as the election decides."""

    def dispatch(self, term: int) -> None:
        """Dispatch from now on."""

    def withhold(self, reason: str) -> None:
        """Send nothing more, at once."""

    async def drain(self) -> None:
        """Return when nothing of what was withheld is under way any more."""

    def changed(self, differences: MemberDifferences) -> None:
        """Follow the members of the fleet."""


class Elector:
    """One member's part in one shard's election. Belongs to one event loop.

    open_session: opens the connection for the lock; raises a StreamfromError. It is given what to call when
        the server has closed that connection.
    now_ns: a monotonic clock, the same as the sessions'.
    on_doubt: called when the server may have turned read-only, or be away: its health should be checked now.
    directory: what is known of the members.
    session: the connection for the lock; None without one.
    """

    def __init__(
        self,
        where: str,
        database: str,
        member: Member,
        tables: Tables,
        open_session: Callable[[Callable[[], None]], Awaitable[ElectionSession]],
        now_ns: Callable[[], int],
        on_doubt: Callable[[], None],
    ) -> None:
        self._where = where
        self._named = {"shards": where}
        self._database = database
        self._member = member
        self._tables = tables
        self._open_session = open_session
        self._on_doubt = on_doubt
        self._now_ns = now_ns
        self._loop = asyncio.get_running_loop()
        self._election = Election()
        self._events: deque[ElectionEvent] = deque()
        self._is_handling = False
        self._is_stopping = False
        self._connection = 0
        self.session: ElectionSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # all of the connection that is there
        self._is_waiting = False  # the connection waits for the lock, up to ROUND_S
        self._drain: asyncio.Task[None] | None = None
        self._timer = WakeTimer(self._loop, now_ns, partial(self.post, Elapsed()))
        self._is_failing = False
        self._secret: str | None = None  # of the lock's name, as read on the connection
        self._hold = LockHold.PLAIN
        self._has_left = False
        self.directory = Directory(member)

    def start(self) -> None:
        """Take part from now on."""
        self.post(Elapsed())

    async def stop(self) -> None:
        """Leave: withhold, let what is under way end, and free the lock. Twice is fine."""
        self._is_stopping = True
        self.post(Resign())
        if self.session is not None and self._drain is None:
            self._drain = self._loop.create_task(self._tables.drain())
        if self._drain is not None:
            await asyncio.wait([self._drain])
        self.post(Drained())
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._timer.cancel()

    @property
    def term(self) -> int:
        """The term in which the member dispatches; 0 for none, or where none can be written."""
        return self._election.term

    def may_send(self) -> bool:
        """Return whether messages may be sent at this moment.

        Where it may no longer be, `Tables.withhold` has been called before this returns.
        """
        if self._election.may_send(self._now_ns()):
            return True
        self.post(Elapsed())
        return False

    @property
    def is_another_dispatching(self) -> bool:
        """Whether another member of the fleet dispatches, and the lock comes here as soon as it no longer does."""
        who = self.directory.dispatcher
        return self._is_waiting and isinstance(who, Member) and who.id != self._member.id

    async def write(self, make: Callable[[], Conversation[T]]) -> T:
        """Carry out a transaction as the dispatcher, on the connection that holds the lock.

        Raises:
            StoreError: the member does not dispatch, or the server refused a statement; TableGone for a table that it has not.
            StreamfromError: the connection is gone, and the lock with it.
        """
        session, connection = self.session, self._connection
        # Asked at the last moment. What is under way when the lock goes is rolled back by the
        # server.
        if session is None or not self.may_send():
            raise StoreError(f"{self._where} is not dispatched from here")
        try:
            result, asked_ns = await session.transact(make)
        except ServerRefused as refused:
            if refused.code in READ_ONLY:
                self.post(TurnedReadOnly(connection))
            kind = TableGone if refused.code == NO_SUCH_TABLE else StoreError
            raise kind(refused.message) from refused
        except StreamfromError as error:
            # Whatever broke it, the lock went with the connection: the election must hear of it
            # first.
            self.post(ConnectionLost(connection, str(error)))
            raise
        self.post(Answered(connection, asked_ns))
        return result

    def unreachable(self, reason: str) -> None:
        """Note that the server cannot be reached: a wait for its lock may have lost its connection in silence."""
        if self._is_waiting:
            self.post(ConnectionLost(self._connection, reason))

    async def leave(self) -> None:
        """Say goodbye, once `stop` has returned: the others look for this member no longer."""
        self._has_left = True
        if self._secret is None:
            return
        with suppress(StreamfromError, ServerRefused, TimeoutError):
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                session = await self._open_session(_no_matter)
                try:
                    await session.converse(settings())
                    await session.converse(forget(self._database, (self._member.id,)))
                finally:
                    session.close()

    def turned_read_only(self) -> None:
        """Note that the server refuses writes."""
        self.post(TurnedReadOnly(self._connection))

    def look(self) -> asyncio.Task[None]:
        """Read the directory again, for a member that is not known yet. It has been read when the task is done."""
        return self._start(self._look())

    def post(self, event: ElectionEvent) -> None:
        """Handle *event* before returning, unless another one is being handled right now."""
        self._events.append(event)
        if self._is_handling:
            return
        self._is_handling = True
        try:
            while self._events:
                for action in self._election.handle(self._events.popleft(), self._now_ns()):
                    self._carry_out(action)
        finally:
            self._is_handling = False
        self._timer.set(self._election.wake_ns())

    def _carry_out(self, action: ElectionAction) -> None:
        match action:
            case Connect():
                self._connection = action.connection
                self._start(self._connect(action.connection))
            case AcquireLock():
                self._ask(action.connection, partial(self._acquire, action))
            case WriteTerm():
                self._ask(action.connection, partial(self._write_term, action.connection))
            case Ping():
                self._ask(action.connection, partial(self._ping, action.connection))
            case LookAround():
                self.look()
            case Disconnect():
                self._disconnect()
                self._on_doubt()
            case BeginDispatch():
                term = {"term": action.term}
                log.info("shard is dispatched from here", extra={**self._named, **term})
                self._tables.dispatch(action.term)
            case Withhold():
                level = logging.INFO if self._is_stopping else logging.WARNING
                reason = {"reason": action.reason}
                log.log(level, "shard is withheld", extra={**self._named, **reason})
                # In this turn of the loop: after the event that lost the lock no row may leave.
                self._tables.withhold(action.reason)
            case _:
                assert_never(action)

    # What the server must answer

    async def _connect(self, connection: int) -> None:
        try:
            lost = ConnectionLost(connection, "the server has closed the connection")
            session = await self._open_session(partial(self.post, lost))
        except StreamfromError as error:
            self._note_failure(str(error))
            self.post(ConnectionLost(connection, str(error)))
            return
        self.session = session
        try:
            joined, _ = await session.converse(
                join(self._database, self._member, secrets.token_hex(16))
            )
        except MemberExists:
            # Of this member: an earlier connection whose end the server has not noticed yet.
            self._fail(connection, "the server still has an earlier connection of this member")
        except (StreamfromError, ServerRefused) as error:
            self._note_failure(str(error))
            self._fail(connection, str(error))
        else:
            self._is_failing = False
            self._secret = joined.secret
            if joined.denied is not None:
                log.info(
                    "the directory has no row of this member",
                    extra={**self._named, "reason": joined.denied},
                )
            self.post(Connected(connection))

    async def _acquire(self, action: AcquireLock) -> ElectionEvent:
        session = self.session
        assert session is not None
        self._is_waiting = True
        try:
            hold, _ = await session.converse(
                acquire(self._database, self._secret, action.wait_s)
            )
        finally:
            self._is_waiting = False
        if hold is None:
            return LockNotGranted(action.connection)
        self._hold = hold
        return LockGranted(action.connection, hold)

    async def _write_term(self, connection: int) -> ElectionEvent:
        assert self.session is not None
        try:
            await self._keep(self.session)
            term, asked_ns = await self.session.converse(write_term(self._database))
        except (LockLost, NotWritable, ServerRefused) as refused:
            return TermRefused(connection, str(refused) or "the server is read-only")
        return TermWritten(connection, asked_ns, term)

    async def _ping(self, connection: int) -> ElectionEvent:
        assert self.session is not None
        if self._hold is LockHold.SECRET:
            # Others may take the plain name as soon as it is free, so a sign of life is no proof.
            return Answered(connection, await self._keep(self.session))
        return Answered(connection, await self.session.ping())

    async def _keep(self, session: ElectionSession) -> int:
        """See that the lock is still this member's alone; return when that was asked. Raises LockLost."""
        asked_ns = self._now_ns()
        self._hold, _ = await session.converse(keep(self._database, self._secret))
        return asked_ns

    async def _look(self) -> None:
        with suppress(StreamfromError, ServerRefused):
            connection = self._connection
            read = await self._read_directory()
            if self.session is not None and read.secret != self._secret:
                # The directory was made, dropped, restored, or may be read by now: take part under the lock's name of today.
                self.post(ConnectionLost(connection, "the directory's secret has changed"))
            differences = self.directory.take(read, self._now_ns())
            for text in differences.warnings:
                log.warning("members differ", extra={**self._named, "reason": text})
            self._tables.changed(differences)
            if differences.forgotten and self.session is not None and self.may_send():
                await self.session.converse(forget(self._database, differences.forgotten))

    async def _read_directory(self) -> DirectoryRead:
        if self.session is not None and not self._is_waiting:
            return await self._ask_directory(self.session)
        # What has changed must be known now: the connection has its answer only with the lock, and who has left the
        # election has none.
        session = await self._open_session(_no_matter)
        try:
            await session.converse(settings())
            return await self._ask_directory(session)
        finally:
            session.close()

    async def _ask_directory(self, session: ElectionSession) -> DirectoryRead:
        read, _ = await session.converse(
            read_directory(self._database, self._member, self._secret)
        )
        if self._has_left or (read.secret is not None and read.has(self._member.id)):
            return read
        # The directory can be had by now, or a client has dropped it, or the row, which hides this member from all others.
        again = enroll(self._database, self._member, secrets.token_hex(16))
        joined, _ = await session.converse(again)
        return replace(read, secret=joined.secret)

    def _ask(self, connection: int, ask: Callable[[], Awaitable[ElectionEvent]]) -> None:
        self._start(self._answer(connection, ask))

    async def _answer(
        self, connection: int, ask: Callable[[], Awaitable[ElectionEvent]]
    ) -> None:
        try:
            event = await ask()
        except (StreamfromError, ServerRefused, LockLost) as error:
            event = ConnectionLost(connection, str(error))
        self.post(event)

    def _fail(self, connection: int, reason: str) -> None:
        self.post(ConnectionLost(connection, reason))

    def _disconnect(self) -> None:
        """Close the connection, and end what waits for its answers."""
        if self.session is not None:
            self.session.close()
            self.session = None
        for task in self._tasks:
            # The one that has lost the connection is at its end anyway.
            if task is not asyncio.current_task():
                task.cancel()

    def _note_failure(self, reason: str) -> None:
        if not self._is_failing:
            log.warning("cannot elect a dispatcher", extra={**self._named, "reason": reason})
        self._is_failing = True

    # Tasks

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _no_matter() -> None:
    """Hear that a connection is closed which was only to ask one question."""
