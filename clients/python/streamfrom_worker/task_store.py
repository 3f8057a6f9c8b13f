"""The table behind the queues of a task framework, and the thread that waits for their messages.

All queues of an application are keys of one streamfrom queue, so one statement can wait for several of them.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pymysql

from .forks import renew_in_children
from .names import quoted
from .session import SILENCE_S, is_permanent, pause_s
from .table import ERROR_MAX, PARKED_NS, Table


AT_ONCE = 100  # messages in one reply, and queues in one STREAM
ACKED_AT_ONCE = 500  # ids in one statement
ENOUGH = 16  # this many messages are written at once
GATHER_S = 0.005  # how long to gather fewer
# The wait of one STREAM, which bounds the delay of a change that could not interrupt it.
WAIT_S = 1.0

# PyMySQL raises these when a connection breaks, but also for many refusals of the server. `is_permanent` separates them.
BROKEN = (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError)
INTERRUPTED = 1317  # KILL QUERY ended the statement; its connection stays usable
OPTIONS = {
    "autocommit": True,
    "charset": "utf8mb4",
    "connect_timeout": 10.0,
    "read_timeout": SILENCE_S,
}
UTF8 = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
TEXT = f"{UTF8} NOT NULL"

Row = tuple[Any, ...]

log = logging.getLogger("streamfrom_worker")


class TaskStore:
    """The table, with one connection for each receiver and one for everything else.

    Threads may share it. If its connection breaks, a statement is sent once more, so each statement must be idempotent. A
    second error is raised to the caller; kombu then reconnects.

    options: arguments of `pymysql.connect`, added to `OPTIONS` or overriding them.
    columns: definitions of additional columns, each followed by a comma.
    taken: the columns that `take` returns.
    """

    columns = ""
    taken = "id, epoch, queue, payload"

    def __init__(
        self, options: dict[str, Any], table: str, ack_wait: float, purge_after: float
    ) -> None:
        self._options = OPTIONS | options
        self._messages = quoted(table)
        self._table = Table(table, (), has_last_error=True)
        self._settings = f"ack_wait = {float(ack_wait)}, purge_after = {float(purge_after)}"
        renew_in_children(self)

    def renew(self) -> None:
        """Start without connections."""
        self._connections: dict[Any, Any] = {}
        self._locks: dict[Any, Any] = defaultdict(threading.RLock)

    def make(self) -> None:
        """Create the table unless it exists."""
        self.run(
            f"CREATE QUEUE IF NOT EXISTS {self._messages} (queue VARCHAR(191) {TEXT}, payload LONGTEXT {TEXT}, "
            f"{self.columns} last_error VARCHAR({ERROR_MAX})) WITH (`key` = queue, {self._settings})"
        )

    def take(
        self, queues: Sequence[str], count: int, wait_s: float, *, by: Any = None
    ) -> Sequence[Row]:
        """Return the `taken` columns of up to *count* messages. Wait for the first up to *wait_s* seconds or until `interrupt`.

        *by* has its own connection, so that its wait does not delay other statements.
        """
        names = ", ".join(["%s"] * len(queues))
        try:
            rows: Sequence[Row] = self._executed(
                by,
                f"STREAM {self.taken} FROM {self._messages} WHERE queue IN ({names}) "
                f"LIMIT {count:d} WAIT {wait_s:.3f}",
                queues,
            )[0]
        except pymysql.err.OperationalError as error:
            if error.args[0] != INTERRUPTED:
                raise
            return ()
        return rows

    def interrupt(self, by: Any) -> None:
        """Interrupt a waiting `take`. If that fails, `take` returns after its timeout."""
        connection = self._connections.get(by)
        if connection is not None and connection.open:
            with contextlib.suppress(*BROKEN):
                self.run(f"KILL QUERY {connection.thread_id()}")

    def put(self, queues: Iterable[str], payload: str, priority: int, at_ns: int) -> None:
        """Insert a message into each of *queues*."""
        rows = [(queue, payload, priority, at_ns) for queue in queues]
        if rows:
            places = ", ".join(["(%s, %s, %s, %s)"] * len(rows))
            values = [value for row in rows for value in row]
            # Not sent again, because a second INSERT would be a second task. The error goes to the caller instead.
            self._executed(
                None,
                f"INSERT INTO {self._messages} (queue, payload, priority, time_next) VALUES {places}",
                values,
                tries=1,
            )

    def acknowledge(self, idents: Sequence[Any], *, by: Any = None) -> None:
        """Acknowledge messages."""
        self._executed(by, self._table.acknowledge(len(idents)), idents)

    def give_back(self, ident: Any) -> None:
        """Return a message, so that it is ready at once."""
        self.run(self._table.give_back(1), [ident])

    def park(self, ident: Any, error: str) -> None:
        """Park a message: it stays in the table and is not delivered again."""
        self.run(self._table.reschedule(parked=True), [error[:ERROR_MAX], ident])

    def extend(self, idents: Sequence[Any], seconds: float) -> None:
        """Extend the leases of messages."""
        self.run(self._table.extend(len(idents)), [round(seconds * 1e6), *idents])

    def size(self, queue: str) -> int:
        """Return how many messages of *queue* are neither acknowledged nor parked."""
        rows = self.run(
            f"SELECT COUNT(*) FROM {self._messages} WHERE queue = %s AND time_acked IS NULL "
            f"AND time_next < {PARKED_NS}",
            [queue],
        )
        return int(rows[0][0])

    def purge(self, queue: str, *, also_parked: bool = False) -> int:
        """Delete the messages of *queue*; return how many were deleted."""
        only = "" if also_parked else f" AND time_next < {PARKED_NS}"
        return self._executed(
            None,
            f"DELETE FROM {self._messages} WHERE queue = %s AND time_acked IS NULL{only}",
            [queue],
        )[1]

    def run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement and return its rows."""
        return self._executed(None, sql, values)[0]

    def close(self) -> None:
        """Close all connections."""
        for user in list(self._connections):
            self.cut(user)

    def cut(self, user: Any) -> None:
        """Close the connection of *user*, or the shared one (None), even while a thread waits on it."""
        connection = self._connections.pop(user, None)
        if connection is not None and connection.open:
            connection._force_close()

    def _executed(
        self, user: Any, sql: str, values: Sequence[Any], tries: int = 2
    ) -> tuple[Any, int]:
        with self._locks[user]:
            while True:
                tries -= 1
                is_new = user not in self._connections
                try:
                    if is_new:
                        self._connections[user] = pymysql.connect(**self._options)
                    with self._connections[user].cursor() as cursor:
                        changed = cursor.execute(sql, tuple(values) or None)
                        return cursor.fetchall() if cursor.description else (), changed
                except BROKEN as error:
                    if error.args[:1] == (INTERRUPTED,):
                        raise
                    broken = self._connections.pop(user, None)
                    if broken is not None:
                        broken.close()
                    # An idle connection may have been closed long ago. A new one shows whether the proxy is reachable.
                    if tries <= 0 or is_new or is_permanent(error):
                        raise


class Inbox:
    """Messages received by all receivers of a process.

    sent: a socket that is readable while there is something to `take`.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._news: deque[tuple[Any, Sequence[Row] | Exception]] = deque()
        self.sent, self._signal = socket.socketpair()
        self.sent.settimeout(0)

    def put(self, receiver: Any, news: Sequence[Row] | Exception) -> None:
        """Add messages or an error from *receiver*."""
        with self._changed:
            self._news.append((receiver, news))
            self._signal.send(b"1")
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait up to *seconds* for something to take."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._news), seconds)

    def take(self) -> tuple[Any, Sequence[Row]] | None:
        """Return a receiver and its messages, or None if none have arrived.

        Raises:
            Exception: a receiver failed; this is its error.
        """
        with self._changed:
            if not self._news:
                return None
            self.sent.recv(1)
            receiver, news = self._news.popleft()
        if isinstance(news, Exception):
            raise news
        return receiver, news

    def close(self) -> None:
        """Close the sockets."""
        self.sent.close()
        self._signal.close()


class Receiver:
    """A thread that waits for the messages of one channel, so that the thread that handles them does not block."""

    def __init__(self, store: TaskStore, inbox: Inbox) -> None:
        self._store = store
        self._inbox = inbox
        self._wanted: tuple[tuple[str, ...], int] | None = None
        self._enough = ENOUGH
        self._awaited: tuple[str, ...] | None = None  # the queues of the running STREAM
        self._changed = threading.Condition()
        self._is_closed = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="streamfrom-receiver", daemon=True
        )
        self._thread.start()

    def want(self, queues: Sequence[str], count: int, most: int = ENOUGH) -> None:
        """Wait for up to *count* messages of *queues*, or for none if either is empty. A running wait for the same queues continues.

        Once messages have arrived, the receiver pauses until the next call.

        most: the room for messages when the consumer holds none.
        """
        with self._changed:
            self._enough = min(most, ENOUGH)
            self._wanted = (tuple(queues[:AT_ONCE]), count) if queues and count else None
            names = None if self._wanted is None else self._wanted[0]
            is_stale = self._awaited is not None and self._awaited != names
            if is_stale:
                self._awaited = None
            self._changed.notify()
        if is_stale:
            self._store.interrupt(self)

    def close(self) -> None:
        """Stop the thread and close its connection."""
        self._is_closed.set()
        with self._changed:
            self._changed.notify()
        self._store.cut(self)
        self._thread.join(WAIT_S)

    def _run(self) -> None:
        while (wanted := self._next()) is not None:
            try:
                rows = self._store.take(*wanted, WAIT_S, by=self)
            except Exception as error:  # noqa: BLE001 - `Inbox.take` raises it
                if not self._is_closed.is_set():
                    self._inbox.put(self, error)
                return
            with self._changed:
                self._awaited = None
            if not rows:
                continue
            if self._is_closed.is_set():
                for row in rows:
                    self._store.give_back(row[0])
                return
            with self._changed:
                self._wanted = None
            self._inbox.put(self, rows)

    def _is_enough(self) -> bool:
        return self._wanted is not None and self._wanted[1] >= self._enough

    def _next(self) -> tuple[tuple[str, ...], int] | None:
        with self._changed:
            while not self._is_closed.is_set():
                if self._wanted is None:
                    self._changed.wait()
                # Room grows message by message, and one statement per message costs more than this pause.
                elif (
                    self._changed.wait_for(self._is_enough, GATHER_S)
                    or self._wanted is not None
                ):
                    break
            if self._is_closed.is_set() or self._wanted is None:
                return None
            self._awaited = self._wanted[0]
            return self._wanted


class Acknowledger:
    """A thread that writes acknowledgements in the background: those that arrive during a statement go into the next one.

    After `close`, it keeps trying for up to *grace_s* seconds while the proxy is unreachable.
    """

    def __init__(self, store: TaskStore, grace_s: float) -> None:
        self._store = store
        self._grace_s = grace_s
        renew_in_children(self)

    def renew(self) -> None:
        """Start with nothing to write."""
        self._changed = threading.Condition()
        self._idents: list[Any] = []
        self._end_s = float("inf")
        self._thread: threading.Thread | None = None

    def add(self, ident: Any) -> None:
        """Queue a message for acknowledgement, even after `close`."""
        with self._changed:
            self._end_s = float("inf")
            self._idents.append(ident)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="streamfrom-acknowledger", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def written(self, within_s: float = SILENCE_S) -> bool:
        """Wait until everything added is written; return False if that takes longer than *within_s*."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._idents, within_s)

    def close(self) -> None:
        """Stop the thread once its acknowledgements are written; wait for this up to WAIT_S."""
        with self._changed:
            self._end_s = time.monotonic() + self._grace_s
            self._changed.notify_all()
        self.written(WAIT_S)

    def _run(self) -> None:
        tries = 0
        while idents := self._next():
            try:
                self._acknowledge(idents)
            except Exception:  # noqa: BLE001 - the thread must survive any error
                time.sleep(pause_s(tries))
                tries += 1
                continue
            tries = 0
            with self._changed:
                del self._idents[: len(idents)]
                self._changed.notify_all()
        self._store.cut(self)

    def _acknowledge(self, idents: Sequence[Any]) -> None:
        """Acknowledge messages; if the server refuses them together, acknowledge each alone."""
        try:
            self._store.acknowledge(idents, by=self)
        except Exception as error:
            if isinstance(error, BROKEN) and not is_permanent(error):
                raise
            if len(idents) > 1:
                for ident in idents:
                    self._acknowledge([ident])
                return
            # Its lease will end, and the message will be redelivered.
            log.error(  # noqa: TRY400 - the server's message is enough
                "message not acknowledged", extra={"id": idents[0], "error": str(error)}
            )

    def _next(self) -> Sequence[Any]:
        """Return the next ids to write, or nothing once the thread must end."""
        with self._changed:
            while not self._idents and self._end_s == float("inf"):
                self._changed.wait()
            self._changed.wait_for(lambda: len(self._idents) >= ENOUGH, GATHER_S)
            if self._idents and time.monotonic() < self._end_s:
                return self._idents[:ACKED_AT_ONCE]
            self._thread = None
            return ()


class Keeper:
    """A thread that extends the leases of a process's messages.

    every_s: seconds between two rounds, and by which a lease is extended.
    held: returns the ids of the messages being processed.
    also: called in each round, for other signs that the process is alive.
    """

    def __init__(
        self,
        store: TaskStore,
        every_s: float,
        held: Callable[[], Sequence[Any]],
        also: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._every_s = every_s
        self._held = held
        self._also = also
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="streamfrom-leases", daemon=True).start()

    def close(self) -> None:
        """Stop the thread at its next round."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(self._every_s):
            self._show_life()

    def _show_life(self) -> None:
        try:
            if held := self._held():
                self._store.extend(held, self._every_s)
            self._also()
        except Exception as error:  # noqa: BLE001 - the next round may succeed
            log.warning("leases not extended", extra={"error": str(error)})
