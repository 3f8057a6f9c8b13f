"""Dramatiq on streamfrom: `dramatiq.set_broker(StreamfromBroker("streamfrom://user:password@host:port/keyspace"))`.

All queues of an application are keys of one streamfrom queue. A delayed message stays in the table until it is due and
takes no room in a worker's prefetch, so there is no delay queue. A message that failed for good is parked: it stays in the
table with its last error, and one statement makes it ready again.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from dramatiq import Broker, Consumer, Message, MessageProxy
from dramatiq.common import current_millis
from dramatiq.errors import ConnectionClosed, DecodeError, QueueJoinTimeout, QueueNotFound
from dramatiq.results.backend import Missing, ResultBackend

from . import address
from .forks import renew_in_children
from .names import quoted
from .producer import Queue
from .session import is_permanent
from .task_store import BROKEN, WAIT_S, Acknowledger, Inbox, Keeper, Receiver, Row, TaskStore


class StreamfromBroker(Broker):
    """A Dramatiq broker on a streamfrom queue.

    table: the name of the streamfrom queue.
    ack_wait: seconds until another worker gets the messages of a worker that died. A live worker extends its
        leases, however long its actors run.
    purge_after: seconds to keep acknowledged messages in the table.

    Raises:
        ValueError: the URL has no user or no keyspace.
    """

    def __init__(
        self,
        url: str,
        *,
        table: str = "dramatiq_message",
        ack_wait: float = 30.0,
        purge_after: float = 3600.0,
        middleware: list[Any] | None = None,
    ) -> None:
        super().__init__(middleware=middleware)
        self.queues: set[str] = set()
        self.table = table
        self._ack_wait_s = ack_wait
        self.store = TaskStore(address.parse(url).options(), table, ack_wait, purge_after)
        self.acks = Acknowledger(self.store, ack_wait)
        self._is_made = False
        renew_in_children(self)

    def renew(self) -> None:
        """Start without consumers: those of the parent are not inherited."""
        self._lock = threading.Lock()
        self._keeper: Keeper | None = None
        self._consumers: set[StreamfromConsumer] = set()

    def close(self) -> None:
        """Close all consumers and connections."""
        if self._keeper is not None:
            self._keeper.close()
        for consumer in list(self._consumers):
            consumer.close()
        self.acks.close()
        self.store.close()

    def declare_queue(self, queue_name: str) -> None:
        """Declare a queue, so that actors can send to it and workers consume it."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues.add(queue_name)
            self.emit_after("declare_queue", queue_name)

    def get_declared_queues(self) -> set[str]:
        """Return the names of the declared queues."""
        return self.queues.copy()

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Consumer:
        """Return a consumer of a queue.

        Raises:
            QueueNotFound: the queue was not declared.
            ConnectionClosed: the proxy is unreachable.
        """
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        self.make()
        with self._lock:
            if self._keeper is None:
                self._keeper = Keeper(self.store, self._ack_wait_s / 3, self._held)
        consumer = StreamfromConsumer(self, queue_name, prefetch, timeout)
        self._consumers.add(consumer)
        return consumer

    def enqueue(self, message: Message, *, delay: int | None = None) -> Message:
        """Send a message, to be delivered in *delay* milliseconds.

        Raises:
            QueueNotFound: the message's queue was not declared.
            ConnectionClosed: the connection failed; the message may or may not have been sent.
        """
        with self._sending(message, delay):
            self.make()
            at_ns = 0 if delay is None else (current_millis() + delay) * 10**6
            with connection_errors():
                self.store.put(
                    [message.queue_name], _text(message), self._priority(message), at_ns
                )
        return message

    def enqueue_in(
        self, connection: Any, message: Message, *, delay: int | None = None
    ) -> Message:
        """Send a message in your own transaction; workers get it once you commit.

        *connection*: any connection that `Queue.enqueue` accepts, with the keyspace as its database.

        Raises:
            QueueNotFound: the message's queue was not declared.
        """
        with self._sending(message, delay):
            self.make()
            Queue(self.table).enqueue(
                connection,
                delay=None if delay is None else delay / 1000,
                priority=self._priority(message),
                queue=message.queue_name,
                payload=_text(message),
            )
        return message

    def flush(self, queue_name: str) -> None:
        """Delete all messages of a queue, including parked ones."""
        self.make()
        with connection_errors():
            self.store.purge(queue_name, also_parked=True)

    def flush_all(self) -> None:
        """Delete all messages of all declared queues."""
        for queue_name in self.queues:
            self.flush(queue_name)

    def join(self, queue_name: str, *, interval: int = 100, timeout: int | None = None) -> None:
        """Wait until a queue has no ready, scheduled or unacknowledged messages. For tests.

        *interval* and *timeout* are in milliseconds.

        Raises:
            QueueJoinTimeout: messages are left after *timeout*.
        """
        end_s = None if timeout is None else time.monotonic() + timeout / 1000
        self.make()
        while self.store.size(queue_name):
            if end_s is not None and time.monotonic() >= end_s:
                raise QueueJoinTimeout(queue_name)
            time.sleep(interval / 1000)

    def make(self) -> None:
        """Create the table unless it exists. The first use calls this.

        Raises:
            ConnectionClosed: the proxy is unreachable.
        """
        with self._lock:
            if not self._is_made:
                with connection_errors():
                    self.store.make()
                self._is_made = True

    def leave(self, consumer: StreamfromConsumer) -> None:
        """Remove a closed consumer."""
        self._consumers.discard(consumer)

    def _held(self) -> list[Any]:
        return [ident for consumer in list(self._consumers) for ident in consumer.idents()]

    def _priority(self, message: Message) -> int:
        # In both, a lower priority comes first; the column is a TINYINT.
        actor = self.actors.get(message.actor_name)
        return 0 if actor is None else min(max(actor.priority, -128), 127)

    @contextmanager
    def _sending(self, message: Message, delay: int | None) -> Iterator[None]:
        if message.queue_name not in self.queues:
            raise QueueNotFound(message.queue_name)
        self.emit_before("enqueue", message, delay)
        yield
        self.emit_after("enqueue", message, delay)


class StreamfromConsumer(Consumer):
    """The consumer of one queue, for one thread. Any thread may acknowledge its messages."""

    def __init__(
        self, broker: StreamfromBroker, queue_name: str, prefetch: int, timeout: int
    ) -> None:
        self._broker = broker
        self._store = broker.store
        self._queue_name = queue_name
        self._prefetch = max(prefetch, 1)
        self._timeout_s = timeout / 1000
        self._inbox = Inbox()
        self._receiver = Receiver(self._store, self._inbox)
        self._rows: deque[Row] = deque()
        self._held: set[Any] = set()

    def idents(self) -> list[Any]:
        """Return the ids of the messages that the worker holds."""
        return [*self._held]

    def __next__(self) -> MessageProxy | None:
        """Return the next message, or None if none arrives within the timeout.

        Raises:
            ConnectionClosed: the connection broke.
        """
        if not self._rows:
            self._want()
            self._inbox.wait(self._timeout_s)
            with connection_errors():
                news = self._inbox.take()
            if news is None:
                return None
            self._rows.extend(news[1])
            self._held.update(row[0] for row in news[1])
        ident, _, _, text = self._rows.popleft()
        try:
            message = _message(text)
        except DecodeError as error:
            reason = f"not a message of Dramatiq: {error}"
            self._end(lambda: self._store.park(ident, reason), ident)
            return None
        proxy = MessageProxy(message)
        proxy.streamfrom_id = ident
        return proxy

    def ack(self, message: Any) -> None:
        """Queue a message for acknowledgement."""
        ident = message.streamfrom_id
        self._end(lambda: self._broker.acks.add(ident), ident)

    def nack(self, message: Any) -> None:
        """Park a message with its error."""
        ident, error = message.streamfrom_id, message._exception
        text = "rejected" if error is None else f"{type(error).__name__}: {error}"
        self._end(lambda: self._store.park(ident, text), ident)

    def requeue(self, messages: Iterable[Any]) -> None:
        """Return messages, so that other workers get them at once."""
        for message in messages:
            self._give_back(message.streamfrom_id)

    def close(self) -> None:
        """Return the messages not started and close the consumer."""
        self._receiver.close()
        try:
            while self._rows:
                self._give_back(self._rows.popleft()[0])
            while (news := self._inbox.take()) is not None:
                for row in news[1]:
                    self._give_back(row[0])
        except (ConnectionClosed, *BROKEN):
            pass  # their leases will end
        self._broker.acks.written(WAIT_S)
        self._inbox.close()
        self._broker.leave(self)

    def _give_back(self, ident: Any) -> None:
        self._end(lambda: self._store.give_back(ident), ident)

    def _end(self, write: Any, ident: Any) -> None:
        with connection_errors():
            write()
        self._held.discard(ident)
        self._want()

    def _want(self) -> None:
        room = self._prefetch - len(self._held)
        self._receiver.want([self._queue_name], room, self._prefetch)


class StreamfromBackend(ResultBackend):
    """Stores results of actors in a table of the same keyspace: `Results(backend=StreamfromBackend(url))`.

    table: the name of the table. It is a queue without consumers, whose purge deletes expired results.
    """

    def __init__(self, url: str, *, table: str = "dramatiq_result", **options: Any) -> None:
        super().__init__(**options)
        self._results = quoted(table)
        self._store_of = TaskStore(address.parse(url).options(), table, 30, 1)
        self._is_made = False

    def _get(self, message_key: str) -> Any:
        rows = self._run(
            f"SELECT value FROM {self._results} WHERE id = %s AND time_acked > NOW()",
            [message_key],
        )
        return self.encoder.decode(rows[0][0]) if rows else Missing

    def _store(self, message_key: str, result: Any, ttl: int) -> None:
        expires_ns = time.time_ns() + ttl * 10**6
        self._run(
            f"INSERT INTO {self._results} (id, value, time_acked) VALUES (%s, %s, %s) "
            "ON DUPLICATE KEY UPDATE value = VALUES(value), time_acked = VALUES(time_acked)",
            [message_key, self.encoder.encode(result), expires_ns],
        )

    def _run(self, sql: str, values: list[Any]) -> Any:
        if not self._is_made:
            self._store_of.run(
                f"CREATE QUEUE IF NOT EXISTS {self._results} (id VARCHAR(255) CHARACTER SET utf8mb4 "
                "COLLATE utf8mb4_bin NOT NULL, value LONGBLOB NOT NULL) WITH (purge_after = 1)"
            )
            self._is_made = True
        return self._store_of.run(sql, values)


@contextmanager
def connection_errors() -> Iterator[None]:
    """Raise Dramatiq's own error if a connection broke, so that a worker tries again.

    Raises:
        ConnectionClosed: the connection broke.
        pymysql.MySQLError: the server refuses the statement, for example a message above `max_allowed_packet`.
    """
    try:
        yield
    except BROKEN as error:
        if is_permanent(error):
            raise
        raise ConnectionClosed(error) from None


def _text(message: Message) -> str:
    return str(message.encode(), "utf-8")


def _message(text: str) -> Message:
    message = Message.decode(text.encode())
    # Dramatiq's worker reads these and would die of a wrong type. Any other malformed field is the actor's error.
    if not (isinstance(message.options, dict) and isinstance(message.actor_name, str)):
        raise DecodeError("options is no object, or actor_name no string", text, None)
    return message
