"""One shard's election, as one member takes part in it.

One task goes from opening a connection to the term that is written on it, and pings from then on. Its end, wherever it is
noticed, takes effect in the same turn of the loop.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from streamfrom.engine.clock import WakeTimer
from streamfrom.engine.errors import NotDispatched, StoreError, TableGone
from streamfrom.engine.fleet import election, lock_connection
from streamfrom.engine.fleet.directory import Directory, Member
from streamfrom.engine.messaging.store.conversation import Conversation, ServerRefused
from streamfrom.sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from streamfrom.engine.fleet.directory import DirectoryRead, MemberDifferences


T = TypeVar("T")

log = logging.getLogger(__name__)

# A stop waits no longer for a server that does not answer.
LEAVE_TIMEOUT_S: Final = 2.0


class ElectionSession(Protocol):
    """The connection for the lock. Every method raises a StreamfromError once it is gone."""

    async def converse(self, conversation: Conversation[T]) -> tuple[T, int]:
        """Carry a conversation out; return its result, and when its last query was sent."""

    async def transact(self, make: Callable[[], Conversation[T]]) -> tuple[T, int]:
        """When it is its turn, carry out the conversation from *make* as one transaction; return as `converse`."""

    async def ping(self) -> int:
        """Ping the server; return when."""

    def close(self) -> None:
        """Close it at once; twice is fine."""


class Tables(Protocol):
    """The dispatching of a shard's message tables, as the election decides it."""

    def dispatch(self, term: int) -> None:
        """Dispatch from now on."""

    def withhold(self, reason: str) -> None:
        """Send nothing more, at once."""

    def not_elected(self, reason: str) -> None:
        """Note why this member takes no part now, while nothing is sent anyway."""

    async def drain(self) -> None:
        """Return when none of the withheld work is under way any more."""

    def changed(self, differences: MemberDifferences) -> None:
        """Process changes of the fleet's members."""


class Elector:
    """One member's part in one shard's election (`election`), from follower to dispatcher. Belongs to one event loop.

    ::

        follower ── connects ──► candidate ── has the lock ──► elect ── writes its term ──► dispatcher
            ▲                                                                                   │ stop
            └───────── the connection is lost or of no use, the server is read-only ◄────── resigning

    open_session: opens the connection for the lock; raises a StreamfromError. Its argument is a callback for when
        the server has closed that connection.
    now_ns: a monotonic clock, the same as the sessions': the wall clock may jump.
    on_doubt: called when the server may have turned read-only, or be away: its health should be checked now.
    directory: the known members.
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
        self._numbers = count(1)
        self._connection = (
            0  # the number of the connection that exists or is being opened; 0 for none
        )
        self.session: ElectionSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # all of the current connection
        self._is_waiting = False  # the connection waits for the lock, up to ROUND_S
        self._term: int | None = None  # written on it, with the lock; 0 if none can be
        self._is_sending = False  # the last call was `Tables.dispatch`, not `withhold`
        self._is_telling = False  # that call is running
        self._is_over = False  # the member leaves the election
        self._proof_ns = 0  # when the latest answered question was sent
        self._given_up_ns: int | None = None  # when to give up waiting for the current answer
        self._failures = 0
        self._is_failing = False
        self._denied: str | None = None  # why the directory has no row of this member
        self._drain: asyncio.Task[None] | None = None
        # Works even without any answer: a dispatcher that gets none must fall silent.
        self._timer = WakeTimer(self._loop, now_ns, self._check)
        self._secret: str | None = None  # of the lock's name, as read on the connection
        self._hold = election.LockHold.PLAIN
        self._has_left = False
        self.directory = Directory(member)

    def start(self) -> None:
        """Take part from now on, until `stop`."""
        if not self._is_over:
            # A new number for each connection: results of an earlier one come too late to mean anything.
            self._connection = next(self._numbers)
            self._start(self._take_part(self._connection))

    async def stop(self) -> None:
        """Leave: withhold, let running work end, and free the lock. Twice is fine."""
        self._is_over = True
        self._withhold("this member leaves the election")
        if self._term is not None and self._drain is None:
            self._drain = self._loop.create_task(self._tables.drain())
        if self._drain is not None:
            await asyncio.wait([self._drain])
        self._close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._timer.cancel()

    def may_send(self) -> bool:
        """Return whether messages may be sent at this moment.

        If not, `Tables.withhold` has been called before this returns.
        """
        if self._is_sending and self._is_proven():
            return True
        self._check()
        return False

    async def write(self, make: Callable[[], Conversation[T]]) -> T:
        """Carry out a transaction as the dispatcher, on the connection that holds the lock.

        Raises:
            StoreError: the server refused a statement; NotDispatched if this member does not dispatch, TableGone if the server
                does not have the table.
            StreamfromError: the connection is gone, and the lock with it.
        """
        session, connection = self.session, self._connection
        # Checked at the last moment. When the lock goes, the server rolls back the work under
        # way.
        if session is None or not self.may_send():
            raise NotDispatched(f"{self._where} is not dispatched from here")
        try:
            result, asked_ns = await session.transact(make)
        except ServerRefused as refused:
            if refused.code in lock_connection.READ_ONLY and connection == self._connection:
                self.turned_read_only()
            kind = TableGone if refused.code == lock_connection.NO_SUCH_TABLE else StoreError
            raise kind(refused.message) from refused
        except StreamfromError as error:
            # Whatever broke it, the lock went with the connection.
            self._lost(connection, str(error))
            raise
        self._answered(connection, asked_ns)
        return result

    def unreachable(self, reason: str) -> None:
        """Note that the server cannot be reached: a wait for its lock may have silently lost its connection."""
        if self._is_waiting:
            self._lost(self._connection, reason)

    def turned_read_only(self) -> None:
        """Note that the server refuses writes: nothing may be sent from it."""
        if self._term is not None and not self._is_over:
            self._lost(self._connection, lock_connection.READ_ONLY_SAID, election.RETRY_LAST_NS)

    def moved(self, reason: str) -> None:
        """Take part at another server from now on: the lock of this one means nothing any more."""
        if self._connection and not self._is_over:
            self._lost(self._connection, reason)

    def reconfigured(self, member: Member) -> None:
        """Become *member*: this process with another configuration, which the next look at the directory writes there."""
        self._member = self.directory.own = member

    async def leave(self) -> None:
        """Say goodbye, after `stop`, so that the others stop looking for this member."""
        self._has_left = True
        if self._secret is None:
            return
        with suppress(StreamfromError, ServerRefused, TimeoutError):
            async with asyncio.timeout(LEAVE_TIMEOUT_S), self._apart() as session:
                await session.converse(
                    lock_connection.forget(self._database, (self._member.id,))
                )

    def look(self) -> asyncio.Task[None]:
        """Read the directory again, to find a new member. It has been read when the task is done."""
        return self._start(self._look())

    # From follower to dispatcher

    async def _take_part(self, connection: int) -> None:
        """Connect, wait for the lock, and dispatch, until the connection is lost, which ends this."""
        try:
            session = await self._in_time(self._connect(connection))
            known_ns, wait_s = self._now_ns(), 0
            # Without a wait at first, so that a member soon knows the others.
            while (hold := await self._in_time(self._acquire(session, wait_s), wait_s)) is None:
                await self._in_time(self.look())
                wait_s = election.ROUND_S
            # From then on no other member can take itself for the dispatcher.
            sole_ns = {
                election.LockHold.BOTH: 0,
                election.LockHold.PLAIN: self._now_ns() + election.LEASE_NS,
                election.LockHold.SECRET: known_ns + election.LEASE_NS,
            }
            await self._sleep(lambda: sole_ns[hold])
            self._term, asked_ns = await self._in_time(self._write_term(session))
            look_ns = self._now_ns() + election.LOOK_NS
            self._answered(connection, asked_ns)
            while connection == self._connection:
                # Answers to writes move that moment. It counts from the question, so that a slow answer does not thin the
                # proofs out.
                await self._sleep(lambda: self._proof_ns + election.PING_NS)
                if self._now_ns() >= look_ns and not self._is_over:
                    look_ns = self._now_ns() + election.LOOK_NS
                    self.look()
                self._answered(connection, await self._in_time(self._ping(session)))
        except lock_connection.NotWritable as refused:
            # At the longest pause at once: a failover takes seconds, and the answer was a clear one.
            self._lost(connection, str(refused), election.RETRY_LAST_NS)
        except (StreamfromError, ServerRefused, lock_connection.LockLost) as error:
            self._lost(connection, str(error))

    async def _connect(self, connection: int) -> ElectionSession:
        """Open the connection, registered in the shard's directory."""
        try:
            closed = partial(self._lost, connection, "the server has closed the connection")
            session = self.session = await self._open_session(closed)
            own_secret = secrets.token_hex(16)
            joined, _ = await session.converse(
                lock_connection.join(self._database, self._member, own_secret)
            )
        except lock_connection.MemberExists:
            # Of this member: an earlier connection whose end the server has not noticed yet.
            text = "the server still has an earlier connection of this member"
            raise StoreError(text) from None
        except (StreamfromError, ServerRefused) as error:
            if not self._is_failing:
                extra = {**self._named, "reason": str(error)}
                log.warning("cannot elect a dispatcher", extra=extra)
            self._is_failing = True
            raise
        self._is_failing = False
        self._secret = joined.secret
        if joined.denied is not None and joined.denied != self._denied:
            extra = {**self._named, "reason": joined.denied}
            log.info("the directory has no row of this member", extra=extra)
        self._denied = joined.denied
        return session

    async def _acquire(self, session: ElectionSession, wait_s: int) -> election.LockHold | None:
        """Wait for the lock; None if another member held it all the time."""
        self._is_waiting = True
        try:
            hold, _ = await session.converse(
                lock_connection.acquire(self._database, self._secret, wait_s)
            )
        finally:
            self._is_waiting = False
        self._failures = 0
        self._hold = hold or election.LockHold.PLAIN
        return hold

    async def _write_term(self, session: ElectionSession) -> tuple[int, int]:
        """Write the next term if the lock is still held and the server writable; return it, and when that was requested."""
        try:
            await self._keep(session)
            return await session.converse(lock_connection.write_term(self._database))
        except (lock_connection.LockLost, ServerRefused) as refused:
            raise lock_connection.NotWritable(str(refused)) from refused

    async def _ping(self, session: ElectionSession) -> int:
        """Request a proof; return when."""
        if self._hold is election.LockHold.SECRET:
            # Others may take the plain name as soon as it is free, so a ping is no proof.
            return await self._keep(session)
        return await session.ping()

    async def _keep(self, session: ElectionSession) -> int:
        """Check that the lock is still exclusively this member's; return when that was requested. Raises LockLost."""
        asked_ns = self._now_ns()
        self._hold, _ = await session.converse(
            lock_connection.keep(self._database, self._secret)
        )
        return asked_ns

    async def _in_time(self, answer: Awaitable[T], wait_s: int = 0) -> T:
        """Return an answer. If it takes ANSWER_NS longer than the server itself waits, give up the connection."""
        self._given_up_ns = self._now_ns() + wait_s * election.SECOND_NS + election.ANSWER_NS
        self._set_timer()
        found = await answer
        self._given_up_ns = None
        return found

    async def _sleep(self, until_ns: Callable[[], int]) -> None:
        while (left_ns := until_ns() - self._now_ns()) > 0:  # noqa: ASYNC110 - the moment moves
            await asyncio.sleep(left_ns / election.SECOND_NS)

    # The effects of an answer, and of its absence

    def _is_proven(self) -> bool:
        return self._now_ns() < self._proof_ns + election.LEASE_NS

    def _answered(self, connection: int, asked_ns: int) -> None:
        """Count an answer on the lock's connection as a proof, and dispatch.

        The lease counts from the question: between the two the server may have ended the connection, and given the lock to
        another.
        """
        if connection != self._connection or self._term is None:
            return
        self._proof_ns = max(self._proof_ns, asked_ns)
        self._given_up_ns = None
        if not self._is_over and not self._is_sending and self._is_proven():
            self._is_sending = self._is_telling = True
            log.info("shard is dispatched from here", extra=self._named)
            self._tables.dispatch(self._term)
            self._is_telling = False
            self.look()
        self._check()

    def _check(self) -> None:
        """Withhold messages once the proof is too old, and give up a connection without answers."""
        if not self._is_telling and not self._is_proven():
            self._withhold(
                f"no answer of the server within {election.LEASE_NS // election.SECOND_NS} s"
            )
        if self._given_up_ns is not None and self._now_ns() >= self._given_up_ns:
            reason = (
                f"no answer of the server within {election.ANSWER_NS // election.SECOND_NS} s"
            )
            self._lost(self._connection, reason)
        self._set_timer()

    def _set_timer(self) -> None:
        moments = [] if self._given_up_ns is None else [self._given_up_ns]
        if self._is_sending:
            moments.append(self._proof_ns + election.LEASE_NS)
        self._timer.set(min(moments, default=None))

    def _withhold(self, reason: str) -> None:
        """Send nothing more, in this turn of the loop: once the lock is lost no row may leave."""
        if self._is_sending:
            self._is_sending = False
            level = logging.INFO if self._is_over else logging.WARNING
            log.log(level, "shard is withheld", extra={**self._named, "reason": reason})
            self._tables.withhold(reason)

    def _lost(self, connection: int, reason: str, pause_ns: int | None = None) -> None:
        """Become a follower again, after *pause_ns* or a pause that doubles: the lock is gone with the connection, or may be."""
        if connection != self._connection:
            return
        if self._is_sending:
            self._withhold(reason)
        else:
            self._tables.not_elected(reason)
        self._close()
        if pause_ns is None:
            # The shift is bounded because `_failures` is not, and a server may be away for days.
            pause_ns = min(
                election.RETRY_FIRST_NS << min(self._failures, 10), election.RETRY_LAST_NS
            )
        self._failures += 1
        self._loop.call_later(pause_ns / election.SECOND_NS, self.start)

    def _close(self) -> None:
        """Close the connection, and the lock with it, and end everything that waits for its answers."""
        if not self._connection:
            return
        self._connection = 0
        self._term = self._given_up_ns = None
        if self.session is not None:
            self.session.close()
            self.session = None
        for task in self._tasks:
            # The task that has lost the connection ends anyway.
            if task is not asyncio.current_task():
                task.cancel()
        self._on_doubt()

    # The directory

    async def _look(self) -> None:
        with suppress(StreamfromError, ServerRefused):
            connection = self._connection
            read = await self._read_directory()
            if self.session is not None and read.secret != self._secret:
                # The directory was made, dropped, restored, or became readable: take part under the lock's present name.
                self._lost(connection, "the directory's secret has changed")
            differences = self.directory.take(read, self._now_ns())
            for text in differences.warnings:
                log.warning("members differ", extra={**self._named, "reason": text})
            self._tables.changed(differences)
            if differences.forgotten and self.session is not None and self.may_send():
                await self.session.converse(
                    lock_connection.forget(self._database, differences.forgotten)
                )

    async def _read_directory(self) -> DirectoryRead:
        if self.session is not None and not self._is_waiting:
            return await self._ask_directory(self.session)
        # Changes must be known now: the connection gets its answer only with the lock, and a member that has left the
        # election has none.
        async with self._apart() as session:
            return await self._ask_directory(session)

    @asynccontextmanager
    async def _apart(self) -> AsyncIterator[ElectionSession]:
        """Open a connection for one query."""
        session = await self._open_session(lambda: None)
        try:
            await session.converse(lock_connection.settings())
            yield session
        finally:
            session.close()

    async def _ask_directory(self, session: ElectionSession) -> DirectoryRead:
        read, _ = await session.converse(
            lock_connection.read_directory(self._database, self._member, self._secret)
        )
        if self._has_left or (read.secret is not None and read.has(self._member)):
            return read
        # The directory is available now, or a client has dropped it, or the row, which hides this member from all others.
        again = lock_connection.enroll(self._database, self._member, secrets.token_hex(16))
        joined, _ = await session.converse(again)
        return replace(read, secret=joined.secret)

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
