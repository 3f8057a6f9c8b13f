"""Database servers as an election sees them: named locks, sessions that end by silence, and a bad network.

The servers behave as MariaDB 10.11 and MySQL 9.7 were measured to: the locks of a session end
with it, after its rollback; a session ends when its client closes it, when the server dies, and
SILENCE_S after the last command if it is idle; a stopped server does not check for silence.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from itertools import count

from streamfrom.engine.errors import StoreError
from streamfrom.engine.fleet.directory import Member, member_of
from streamfrom.engine.fleet.election import SILENCE_S
from streamfrom.engine.fleet.lock_connection import DUPLICATE_KEY, NO_SUCH_TABLE
from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreAnswer


@dataclass(frozen=True)
class Work:
    """A dispatcher's change of messages, in one transaction: done at once, or not at all."""

    run: Callable[[], Awaitable[object]]
    result: list[object] = field(default_factory=list)


def literals(sql):
    """Return the quoted texts of a statement."""
    return re.findall(rb"'([^']*)'", sql)


def nobody_watches():
    """Ignore a member's doubts about a server, because no watch runs here."""


def now_ns():
    return round(asyncio.get_running_loop().time() * 10**9)


@dataclass(eq=False)
class Network:
    """The connection of one member to one server. A cut loses no data, because TCP resends it.

    account: the account that it logs in with.
    may_use, may_make: that account's privileges on the directory.
    """

    delay_s: float = 0.001
    account: str = "shards"
    may_use: bool = True
    may_make: bool = True
    is_whole: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self):
        self.is_whole.set()

    async def pass_by(self):
        """Wait as long as bytes take; forever while the connection is cut."""
        while True:
            await self.is_whole.wait()
            await asyncio.sleep(self.delay_s)
            if self.is_whole.is_set():
                return


@dataclass(eq=False)
class FakeShard:
    """One primary. Its locks and its sessions live as long as its process, its rows forever.

    sessions: in the order in which they came, because a set has another order in each process.
    has_directory: the database `streamfrom` exists; secret: of the lock's name, in it.
    """

    silence_s: float = SILENCE_S
    rows: dict[str, Member] = field(default_factory=dict)
    locks: dict[bytes, FakeSession] = field(default_factory=dict)
    waiting: dict[bytes, deque[tuple[FakeSession, asyncio.Future[bool]]]] = field(
        default_factory=dict
    )
    sessions: dict[FakeSession, None] = field(default_factory=dict)
    has_directory: bool = False
    secret: str | None = None
    is_read_only: bool = False
    is_up: bool = True
    write_s: float = 0.001
    runs: asyncio.Event = field(default_factory=asyncio.Event)
    ids: count[int] = field(default_factory=lambda: count(1))
    terms: list[int] = field(default_factory=list)

    def __post_init__(self):
        self.runs.set()

    async def open(self, network):
        """Open a session over *network*."""
        await network.pass_by()
        await self.runs.wait()
        if not self.is_up:
            raise StoreError("connection refused")
        session = FakeSession(self, network, next(self.ids))
        self.sessions[session] = None
        session.silence = asyncio.create_task(session.watch_silence())
        await network.pass_by()
        return session

    def crash(self):
        """Die, with all sessions and their locks."""
        self.is_up = False
        for session in list(self.sessions):
            self.end(session)

    def end(self, session):
        """End a session: its locks go to waiting sessions."""
        if session not in self.sessions:
            return
        self.sessions.pop(session)
        session.ended_ns = now_ns()
        session.is_ended.set()
        session.silence.cancel()
        for queue in self.waiting.values():
            for entry in [entry for entry in queue if entry[0] is session]:
                queue.remove(entry)
        for name in [name for name, holder in self.locks.items() if holder is session]:
            del self.locks[name]
            self._grant(name)

    def _grant(self, name):
        queue = self.waiting.get(name)
        while queue and name not in self.locks:
            session, granted = queue.popleft()
            if not granted.done():
                self.locks[name] = session
                granted.set_result(True)

    async def execute(self, session, sql):
        """Answer one statement of `engine.fleet.lock_connection`."""
        if isinstance(sql, Work):
            await self._work(session, sql)
        elif sql.startswith(b"SELECT GET_LOCK"):
            (name,), wait_s = literals(sql), int(sql.split(b", ")[-1].rstrip(b")"))
            return [((b"%d" % await self._take(session, name, wait_s),), b"")]
        elif sql.startswith(b"SELECT @@global.read_only"):
            return [((b"%d" % self.is_read_only,), b"")]
        elif sql.startswith(b"SELECT k.holder"):
            *_, name = literals(sql)
            holder = self.locks.get(name)
            is_ours = holder is not None and holder.account == session.account
            return [((self._holder(name), b"%d" % is_ours), b"")]
        elif b"IS_USED_LOCK" in sql:
            return self._directory(session, sql)
        elif sql.startswith(b"CREATE"):
            self._refuse_read_only()
            if not session.network.may_make:
                raise ServerRefused(1044, "Access denied")
            if not self.has_directory:
                self.drop_directory()
                self.has_directory = True
        elif b" streamfrom." in sql:
            return self._in_directory(session, sql)
        return []  # includes settings and pings

    async def _work(self, session, work):
        await asyncio.sleep(self.write_s)
        self._refuse_read_only()
        if session not in self.sessions:
            # If it was killed meanwhile, it was rolled back before its locks were free.
            raise StoreError("server has gone away")
        assert session in self.locks.values(), "writes without the lock"
        work.result.append(await work.run())

    def _in_directory(self, session, sql):
        """Read or write rows of the directory."""
        self._find_directory(session)
        texts = literals(sql)
        if sql.startswith(b"SELECT secret"):
            return [] if self.secret is None else [((self.secret.encode(),), b"")]
        if sql.startswith(b"SELECT term"):
            term = self.terms[-1] if self.terms else 0
            return [] if self.secret is None else [((b"%d" % term,), b"")]
        if sql.startswith(b"SELECT member"):
            number = int(sql.split(b" = ")[-1])
            found = [m for m in self.rows.values() if m.id_prefix == number]
            return [((member.id.encode(),), b"") for member in found]
        if sql.startswith(b"DELETE"):
            for name in texts[1:]:
                self.rows.pop(name.decode(), None)
            return []
        if sql.startswith(b"INSERT INTO streamfrom.members"):
            member = self._member_of(texts[1:])
            numbers = {one.id_prefix for one in self.rows.values()}
            if member.id in self.rows or member.id_prefix in numbers:
                raise ServerRefused(DUPLICATE_KEY, "Duplicate entry")
            self._refuse_read_only()
            self.rows[member.id] = member
            return []
        self._refuse_read_only()
        if sql.startswith(b"INSERT IGNORE"):
            self.secret = self.secret or texts[1].decode()
        elif sql.startswith(b"UPDATE streamfrom.locks"):
            self.terms.append(int(sql.split()[5]))
        else:
            assert sql.startswith(b"UPDATE streamfrom.members")
            member = self._member_of(texts[:-2])
            if member.id in self.rows:
                self.rows[member.id] = member
        return []

    def _member_of(self, texts):
        found = member_of(texts)
        assert isinstance(found, Member)
        return found

    def _refuse_read_only(self):
        if self.is_read_only:
            raise ServerRefused(1290, "The server is running with the --read-only option")

    async def _take(self, session, name, wait_s):
        if self.locks.get(name) is session:
            return True
        if name not in self.locks:
            self.locks[name] = session
            return True
        if not wait_s:
            return False
        granted = asyncio.get_running_loop().create_future()
        self.waiting.setdefault(name, deque()).append((session, granted))
        try:
            async with asyncio.timeout(wait_s):
                return await asyncio.shield(granted)
        except TimeoutError:
            granted.cancel()
            return False

    def _find_directory(self, session):
        if not session.network.may_use:
            raise ServerRefused(1142, "SELECT command denied")
        if not self.has_directory:
            raise ServerRefused(NO_SUCH_TABLE, "Table 'streamfrom.members' doesn't exist")

    def drop_directory(self):
        """Drop the directory and everything in it."""
        self.has_directory, self.secret = False, None
        self.rows.clear()
        self.terms.clear()

    def _directory(self, session, sql):
        lock, _, own = names = re.findall(rb"IS_USED_LOCK\('([^']*)'\)", sql)
        assert own.startswith(lock + b".")
        locks = (*map(self._holder, names),)
        if b"streamfrom.members" not in sql:
            return [((*locks, None, None), b"")]
        self._find_directory(session)
        secret = None if self.secret is None else self.secret.encode()
        rows = [
            (
                (*locks, secret, self._holder(lock + b"." + name.encode()), *member.values),
                b"",
            )
            for name, member in self.rows.items()
        ]  # fmt: skip
        return rows or [((*locks, secret, *[None] * 8), b"")]

    def _holder(self, name):
        return b"%d" % self.locks[name].id if name in self.locks else None

    def replica(self):
        """Return the server after a failover: the rows, but no sessions and locks."""
        return replace(
            self,
            rows=dict(self.rows),
            locks={},
            waiting={},
            sessions={},
            is_read_only=False,
            is_up=True,
            runs=asyncio.Event(),
            ids=count(1),
            terms=[],
        )


@dataclass(eq=False)
class FakeSession:
    """A session of a server, and also its client's handle."""

    server: FakeShard
    network: Network
    id: int
    is_ended: asyncio.Event = field(default_factory=asyncio.Event)
    is_busy: bool = False
    heard_ns: int = 0
    silence: asyncio.Task[None] = field(init=False)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_closed: asyncio.Event = field(default_factory=asyncio.Event)
    ended_ns: int = 0
    fell_silent: bool = False

    @property
    def account(self):
        return self.network.account

    async def watch_silence(self):
        """End the session after a long idle time. A stopped server does not check the clock."""
        self.heard_ns = now_ns()
        while True:
            left_s = self.server.silence_s - (now_ns() - self.heard_ns) / 10**9
            if self.is_busy:
                left_s = self.server.silence_s
            elif left_s <= 0:
                await self.server.runs.wait()
                self.fell_silent = True
                self.server.end(self)
                return
            await asyncio.sleep(left_s)

    async def converse(self, conversation):
        return await self.transact(lambda: conversation)

    async def transact(self, make):
        async with self.turn:
            asked_ns = now_ns()
            conversation = make()
            try:
                query = next(conversation)
                while True:
                    asked_ns = now_ns()
                    try:
                        rows = await self._asked(query.sql)
                    except ServerRefused as refused:
                        query = conversation.throw(refused)
                    else:
                        query = conversation.send(StoreAnswer(rows, 1))
            except StopIteration as end:
                return end.value, asked_ns

    async def ping(self):
        async with self.turn:
            asked_ns = now_ns()
            await self._asked(b"")
            return asked_ns

    def close(self):
        if not self.is_closed.is_set():
            self.is_closed.set()
            asyncio.get_running_loop().create_task(self._say_goodbye())

    async def _say_goodbye(self):
        await self.network.pass_by()
        await self.server.runs.wait()
        self.server.end(self)

    async def _asked(self, sql):
        """Send a question and return its answer, unless the session ends and that is noticed, or is closed on this side."""
        asking = asyncio.ensure_future(self._ask(sql))
        ending = asyncio.ensure_future(self._noticed())
        closing = asyncio.ensure_future(self.is_closed.wait())
        try:
            await asyncio.wait([asking, ending, closing], return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            raise StoreError("server has gone away")
        finally:
            for task in (asking, ending, closing):
                task.cancel()

    async def _noticed(self):
        await self.is_ended.wait()
        await self.network.pass_by()

    async def _ask(self, sql):
        await self.network.pass_by()
        await self.server.runs.wait()
        if self.is_ended.is_set():
            raise StoreError("server has gone away")
        self.is_busy = True
        try:
            # Shielded: the server completes the statement of a client that goes away.
            rows = await self.server.execute(self, sql)
        finally:
            self.is_busy = False
            self.heard_ns = now_ns()
        await self.network.pass_by()
        return rows
