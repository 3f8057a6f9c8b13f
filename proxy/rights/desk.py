"""Queries the servers for accounts' rights, and keeps the answers.

A question goes to its shard on a connection of the account, outside of every session's transaction. Simultaneous questions of the
same kind are sent once. The rights that open streams need are checked again before their answers are too old, once
for all streams of an account.

Servers read global privileges and roles at login, and those on a database when it becomes the current one. So
the first question goes to any connection of the pool, and each later one to a connection that has just logged in.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from streamfrom.proxy.backends.backend import Backend, ProxyItself
from streamfrom.proxy.backends.session_variables import own_settings
from streamfrom.proxy.errors import BackendError, BackendUnavailable, ProxyError
from streamfrom.proxy.execution.retry_rules import Ending, ending_of
from streamfrom.proxy.rights.questions import REFUSALS, Right
from streamfrom.proxy.status.status_source import Sight
from streamfrom.proxy.wire.commands import init_db, query
from streamfrom.proxy.wire.resultset import parse_text_row
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from streamfrom.proxy.backends.account import Account
    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.sqlparse_ext.errors import StreamfromError


KEPT_S: Final = 30.0
# Up to this many answers are kept; beyond it the oldest are dropped.
ANSWERS_MAX: Final = 50_000

K = TypeVar("K", bound="Hashable")
T = TypeVar("T")


class Answer(NamedTuple, Generic[T]):
    """An answer of a server."""

    value: T  # its content
    asked_s: float  # when the question was sent
    generation: int  # how often `forget` had been called by then


class Answers(Generic[K, T]):
    """The answers to questions *K*, and how long they hold. Pure.

    An answer is fresh for KEPT_S after its question was sent, unless `forget` was called meanwhile. While the server cannot be
    queried, a permission that is no longer fresh stands for the grace; a refusal does not, because the question is sent again.
    """

    def __init__(self) -> None:
        self.generation = 0  # how often `forget` has been called
        self._answers: dict[K, Answer[T]] = {}

    def fresh(self, key: K, now_s: float) -> Answer[T] | None:
        """Return the answer if it is still fresh."""
        found = self._answers.get(key)
        if (
            found is None
            or found.generation != self.generation
            or now_s - found.asked_s >= KEPT_S
        ):
            return None
        return found

    def last(self, key: K, now_s: float, grace_s: float) -> Answer[T] | None:
        """Return the last answer, to stand in for at most *grace_s* for a fresh one."""
        found = self._answers.get(key)
        return None if found is None or now_s - found.asked_s >= KEPT_S + grace_s else found

    def has(self, key: K) -> bool:
        """Return whether there is an answer, however old."""
        return key in self._answers

    def keep(self, key: K, answer: Answer[T]) -> None:
        """Keep *answer* if it is the latest."""
        before = self._answers.pop(key, None)
        if before is not None and before.asked_s > answer.asked_s:
            answer = before
        self._answers[key] = answer
        if len(self._answers) > ANSWERS_MAX:
            del self._answers[next(iter(self._answers))]

    def forget(self) -> None:
        """Make all answers stale."""
        self.generation += 1


# A statement that finds no row takes longer only if a lock on the table's definition blocks it.
ASK_TIMEOUT_S: Final = 5.0
# The rights of open streams are checked at this interval, so that the answer arrives within KEPT_S.
ASK_AGAIN_S: Final = KEPT_S / 2
# How many of these rights are checked at once.
AT_ONCE_MAX: Final = 8
# Connections besides `pool_size` that may log in at a shard at once for this.
LOGINS_AT_ONCE_MAX: Final = 2

# An error after the check of privileges: an UPDATE or DELETE without a key, if sql_safe_updates is on for all.
_SAFE_UPDATES: Final = 1175
_DATABASE: Final = query(
    b"SELECT schema_name FROM information_schema.schemata WHERE schema_name = DATABASE()"
)
_TABLES: Final = query(
    b"SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
)


class Question(NamedTuple):
    """A question: does the account have a right on a shard?"""

    account: Account
    roles: str | None  # the argument of SET ROLE; None for the roles of a login
    shard: ShardRuntime
    right: Right | None  # None: which tables of the shard's database does the account see?


class _RightsReply(NamedTuple):
    """A server's reply."""

    refusal: BackendError | None
    # The tables that it listed; None if the account does not even see the database.
    tables: frozenset[str] | None = None


class RightsDesk:
    """The rights of all accounts. Only users' own accounts are checked: all others may do everything.

    grace_s: returns how long a permission stands while the server cannot be queried.
    spawn: runs a coroutine in the background and logs its failure.
    """

    def __init__(
        self,
        grace_s: Callable[[], float],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._grace_s = grace_s
        self._spawn = spawn
        self._answers: Answers[Question, _RightsReply] = Answers()
        # By the question, the generation of the answers, and `_defined_s`: one that was sent before a change is not the same.
        self._asking: dict[tuple[Question, int, float], asyncio.Task[_RightsReply]] = {}
        self._watchers: defaultdict[Question, set[Callable[[StreamfromError], None]]] = (
            defaultdict(set)
        )
        self._changed = asyncio.Event()
        self._defined_s = 0.0  # when message tables changed last
        self._logins: defaultdict[ShardRuntime, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(LOGINS_AT_ONCE_MAX)
        )
        self._is_watching = False

    async def check(self, key: Question) -> None:
        """Return if the account has the right; a fresh answer costs nothing, and a new one a round trip.

        Raises BackendError if the server refuses it, or the question; BackendUnavailable, PoolTimeout or BackendLost if it cannot be queried.
        """
        if key.account.is_own:
            refusal = (await self._outcome(key)).refusal
            if refusal is not None:
                raise refusal.with_traceback(None)  # otherwise each raise adds a frame

    def allows(self, account: Account, shard: ShardRuntime, right: Right) -> bool:
        """Return whether *account*, with the roles of a login, is known to have *right*; if unknown, start a check."""
        if not account.is_own:
            return True
        key, now_s = Question(account, None, shard, right), asyncio.get_running_loop().time()
        found = self._answers.fresh(key, now_s)
        if found is None or now_s - found.asked_s > ASK_AGAIN_S:
            self._begin(key)
        return found is not None and found.value.refusal is None

    async def sight(self, keys: Sequence[Question]) -> Sight:
        """Return the tables that an account sees in the keyspaces of some shards; the rights of *keys* are None.

        Of a keyspace it sees the tables that it sees on all shards that can be asked. Raises the error of one if none can.
        """
        if not all(key.account.is_own for key in keys):
            return Sight()
        outcomes = await asyncio.gather(*map(self._outcome, keys), return_exceptions=True)
        failed = [each for each in outcomes if isinstance(each, BaseException)]
        seen: dict[str, frozenset[str] | None] = {}
        for key, found in zip(keys, outcomes, strict=True):
            keyspace = key.shard.keyspace
            if isinstance(found, _RightsReply):
                before = seen.get(keyspace, found.tables)
                if before is None or found.tables is None:
                    seen[keyspace] = None
                else:
                    seen[keyspace] = before & found.tables
            elif not isinstance(found, ProxyError) or len(failed) == len(keys):
                raise found
        return Sight({name: tables for name, tables in seen.items() if tables is not None})

    def watch(
        self, keys: Sequence[Question], refused: Callable[[StreamfromError], None]
    ) -> Callable[[], None]:
        """Call *refused* when one of *keys*, which were allowed, is no longer allowed; return a function that ends the watch."""
        for key in keys:
            self._watchers[key].add(refused)
        if keys and not self._is_watching:
            self._is_watching = True
            self._spawn(self._keep_watch())

        def unwatch() -> None:
            for key in keys:
                self._watchers[key].discard(refused)
                if not self._watchers[key]:
                    del self._watchers[key]

        return unwatch

    def changed(self) -> None:
        """Make all answers stale, because a statement has changed accounts' rights."""
        self._answers.forget()
        self._changed.set()

    def tables_changed(self, _keyspace: str) -> None:
        """Make the next reader query again which tables accounts see."""
        self._defined_s = asyncio.get_running_loop().time()

    # --- asking ---------------------------------------------------------------------------

    async def _outcome(self, key: Question) -> _RightsReply:
        found = self._answers.fresh(key, asyncio.get_running_loop().time())
        if found is None or (key.right is None and found.asked_s <= self._defined_s):
            return await self._ask(key)
        return found.value

    async def _ask(self, key: Question) -> _RightsReply:
        """Send the question, or wait for the same one under way; it completes even if its caller gives up."""
        return await asyncio.shield(self._begin(key))

    def _begin(self, key: Question) -> asyncio.Task[_RightsReply]:
        this = key, self._answers.generation, self._defined_s
        asking = self._asking.get(this)
        if asking is None:
            asking = self._asking[this] = asyncio.create_task(self._answered(key))
            asking.add_done_callback(lambda _: self._asking.pop(this, None))
            # Read in any case: asyncio logs an exception that is never read.
            asking.add_done_callback(lambda end: end.cancelled() or end.exception())
        return asking

    async def _answered(self, key: Question) -> _RightsReply:
        """Return the answer, or the last one while the server cannot be queried. Raises as `check`."""
        loop, generation = asyncio.get_running_loop(), self._answers.generation
        asked_s = loop.time()
        last = self._standing(key)
        if not key.shard.is_answering:  # else the question would wait for it
            if last is not None and last.generation == generation:
                return last.value
            if key.right is None:
                reason = key.shard.trouble or "no answer"
                raise BackendUnavailable(key.shard.keyspace, key.shard.name, reason)
        try:
            outcome = _RightsReply(None, await self._tables(key))
        except ProxyError as error:
            if not (isinstance(error, BackendError) and error.code in REFUSALS):
                last = self._standing(key)
                if last is None:
                    raise
                return last.value
            outcome = _RightsReply(_refusal(key, error))
        self._answers.keep(key, Answer(outcome, asked_s, generation))
        return outcome

    def _standing(self, key: Question) -> Answer[_RightsReply] | None:
        """Return the last answer if it was a permission that still stands."""
        now_s = asyncio.get_running_loop().time()
        last = self._answers.last(key, now_s, self._grace_s())
        return None if last is None or last.value.refusal is not None else last

    async def _tables(self, key: Question) -> frozenset[str] | None:
        """Send the question to the server; return the tables that it lists, if they are the question."""
        if key.right is not None:
            await self._ask_server(key, list(map(query, key.right.statements())))
            return None
        *_, database, tables = await self._ask_server(key, [_DATABASE, _TABLES])
        if not database.rows:
            return None
        names = (parse_text_row(row, 1)[0] for row in tables.rows)
        return frozenset((name or b"").decode() for name in names)

    async def _ask_server(self, key: Question, packets: list[bytes]) -> list[BufferedAnswer]:
        if key.roles is not None:
            packets = [query(b"SET ROLE " + key.roles.encode()), *packets]
        if not self._answers.has(key):
            return await self._on_pooled(key, [_use(key.shard), *packets])
        shard = key.shard
        async with self._logins[shard]:
            backend = await shard.open_backend(key.account, shard.database, 0)
            try:
                return await _answers(key, backend, packets)
            finally:
                backend.close()

    async def _on_pooled(self, key: Question, packets: list[bytes]) -> list[BufferedAnswer]:
        shard = key.shard
        settings = own_settings(on_mariadb=shard.is_mariadb, autocommit=True)
        owner = ProxyItself(key.account, settings, began_s=time.monotonic())
        backend = await shard.pool.acquire(owner, shard.database)
        try:
            return await _answers(key, backend, packets)
        finally:
            # If an answer is missing, the connection is closed by now and the pool drops it.
            if key.roles is not None:
                shard.pool.discard(backend)  # only a login undoes SET ROLE
            else:
                shard.pool.release(backend)
                shard.pool.forget_owner(owner, backend)

    # --- watching -------------------------------------------------------------------------

    async def _keep_watch(self) -> None:
        """Check the rights of open streams until there are none."""
        try:
            while self._watchers:
                try:
                    async with asyncio.timeout(ASK_AGAIN_S):
                        await self._changed.wait()
                except TimeoutError:
                    pass
                self._changed.clear()
                turns = asyncio.Semaphore(AT_ONCE_MAX)
                await asyncio.gather(*(self._look(key, turns) for key in list(self._watchers)))
        finally:
            self._is_watching = False

    async def _look(self, key: Question, turns: asyncio.Semaphore) -> None:
        async with turns:
            error: StreamfromError | None
            try:
                error = (await self._ask(key)).refusal
            except ProxyError as failure:
                error = failure
        if error is not None:
            for refused in list(self._watchers.get(key, ())):
                refused(error)


def _use(shard: ShardRuntime) -> bytes:
    return init_db(shard.database.encode("utf-8", "surrogateescape"))


async def _answers(
    key: Question, backend: Backend, packets: list[bytes]
) -> list[BufferedAnswer]:
    """Return the answers to a question. Raises as `RightsDesk.check`."""
    shard = key.shard
    try:
        async with asyncio.timeout(ASK_TIMEOUT_S):
            answers = await backend.answers(packets)
    except TimeoutError:
        reason = f"no answer to account {key.account.name!r} within {ASK_TIMEOUT_S:g} s"
        raise BackendUnavailable(shard.keyspace, shard.name, reason) from None
    for answer in answers:
        if answer.error is not None and answer.error.code != _SAFE_UPDATES:
            error = answer.error.exception()
            if ending_of(error) is Ending.READ_ONLY:
                # Outside a transaction, a statement waits until the shard is back.
                raise BackendUnavailable(shard.keyspace, shard.name, str(error))
            raise error
    return answers


def _refusal(key: Question, error: BackendError) -> BackendError:
    """Return a server's refusal with the shard and the grant that is missing."""
    text = f"{error} (shard {key.shard}"
    if key.right is not None:
        table = ".".join(map(quote_identifier, (key.shard.database, key.right.table)))
        text += f"; {key.right.act.value} needs GRANT {key.right.grants} ON {table}"
    return BackendError(error.code, error.state, text + ")")
