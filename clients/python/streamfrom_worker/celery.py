"""Celery and kombu on streamfrom: `broker_url = "streamfrom://user:password@host:port/keyspace"`.

Importing this module registers the transport. All queues of an application are keys of one streamfrom queue, so a
worker waits for all of them, and for remote control, with one statement. The commit of a task wakes it. A
task with an ETA stays in the table until it is due and takes no place in a worker's prefetch. A second
table holds the bindings of exchanges, which remote control and events need.

`broker_transport_options`:

- `table`: the name of the queue, `celery_message` by default. The bindings are in `TABLE_binding`.
- `ack_wait`: seconds until another worker gets the tasks of a worker that died, 30 by default. A live worker
  extends its leases, however long its tasks run.
- `purge_after`: seconds to keep acknowledged tasks in the table, an hour by default.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from queue import Empty
from typing import Any

import pymysql
from kombu.transport import TRANSPORT_ALIASES, virtual
from kombu.utils.json import dumps, loads

from .address import DEFAULT_PORT
from .celery_store import CeleryStore
from .forks import renew_in_children
from .task_store import AT_ONCE, BROKEN, Acknowledger, Inbox, Keeper, Receiver, Row


LOOK_S = 0.1  # how often a full consumer checks for free room
REFRESH_S = 30.0  # how often a process refreshes the bindings of its queues
FORGOTTEN_S = 150.0  # queues without a refresh for this long are removed
PRIORITY_MAX = 9  # Celery delivers its highest priority first, streamfrom its lowest


log = logging.getLogger("streamfrom_worker")


class Channel(virtual.Channel):
    """A kombu channel whose delivery tags are message ids."""

    supports_fanout = True
    default_priority = 0
    max_priority = PRIORITY_MAX
    connection: Any
    qos: Any

    def __init__(self, connection: Any, **options: Any) -> None:
        super().__init__(connection, **options)
        self.no_ack_queues: set[str] = set()
        self.receiver: Receiver | None = None

    @property
    def opened(self) -> Any:
        """The transport. Raises InterfaceError if the channel is closed; tasks that Celery finishes after that are redelivered."""
        if self.connection is None:
            raise pymysql.err.InterfaceError(0, "the channel is closed")
        return self.connection

    @property
    def store(self) -> CeleryStore:
        """The tables."""
        store: CeleryStore = self.opened.store
        return store

    def idents(self) -> list[Any]:
        """Return the ids of messages that were delivered but not acknowledged."""
        if self._qos is None:
            return []
        return [tag for tag in list(self._qos._delivered) if tag not in self._qos._dirty]

    def basic_consume(
        self, queue: str, no_ack: bool, callback: Any, consumer_tag: str, **options: Any
    ) -> None:
        """Consume from a queue; with *no_ack*, acknowledge its messages on delivery."""
        (self.no_ack_queues.add if no_ack else self.no_ack_queues.discard)(queue)
        super().basic_consume(queue, no_ack, callback, consumer_tag, **options)

    def basic_cancel(self, consumer_tag: str) -> None:
        """Stop consuming for this consumer tag."""
        super().basic_cancel(consumer_tag)
        self.want()

    def basic_get(self, queue: str, no_ack: bool = False, **options: Any) -> Any:
        """Return a message from a queue, or None."""
        message = super().basic_get(queue, no_ack, **options)
        if message is not None and no_ack:
            self.store.acknowledge([message.delivery_tag])
        return message

    def basic_ack(self, delivery_tag: Any, multiple: bool = False) -> None:
        """Queue one message for acknowledgement."""
        self.opened.acks.add(delivery_tag)
        super().basic_ack(delivery_tag, multiple)
        self.want()

    def basic_reject(self, delivery_tag: Any, requeue: bool = False) -> None:
        """Return a message to its queue, or park it."""
        store = self.store
        if not requeue:
            store.park(delivery_tag, "rejected by the worker; see its log")
        super().basic_reject(delivery_tag, requeue)
        self.want()

    def want(self) -> None:
        """Wait for as many messages as the channel's consumers have room for."""
        if self.closed or (self.receiver is None and not self._consumers):
            return
        if self.receiver is None:
            self.receiver = Receiver(self.store, self.connection.inbox)
        room = self.qos.can_consume_max_estimate()
        count = AT_ONCE if room is None else min(room, AT_ONCE)
        self.receiver.want(self._active_queues, count, self.qos.prefetch_count or AT_ONCE)

    def receive(self, rows: Sequence[Row]) -> None:
        """Deliver messages to their consumers."""
        decoded = [(payload, row) for row in rows if (payload := self._decoded(row))]
        if done := [row[0] for _, row in decoded if row[2] in self.no_ack_queues]:
            self.store.acknowledge(done)
        for payload, row in decoded:
            self.connection._deliver(payload, row[2])

    def close(self) -> None:
        """Return unacknowledged messages and close the channel."""
        receiver, self.receiver = self.receiver, None
        if receiver is not None:
            receiver.close()
        super().close()

    def after_reply_message_received(self, queue: str) -> None:
        """Keep the queue: more workers may reply, and its owner deletes it."""

    def _restore(self, message: Any) -> None:
        self.store.give_back(message.delivery_tag)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        while rows := self.store.take([queue], 1, timeout or 0.0):
            if payload := self._decoded(rows[0]):
                return payload
        raise Empty

    def _decoded(self, row: Row) -> dict[str, Any] | None:
        """Decode a row as a kombu message; if that fails, park it and return None."""
        try:
            payload = payload_of(row)
            self.Message(payload, channel=self)
        except Exception as error:  # noqa: BLE001 - any error of a malformed payload
            reason = f"not a message of kombu: {type(error).__name__}: {error}"
            log.warning("message parked", extra={"id": row[0], "error": reason})
            self.store.park(row[0], reason)
            return None
        return payload

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        self._put_all([queue], message)

    def _put_fanout(
        self, exchange: str, message: dict[str, Any], routing_key: str, **_: Any
    ) -> None:
        self._put_all({queue for _, _, queue in self.get_table(exchange)}, message)

    def _put_all(self, queues: Iterable[str], message: dict[str, Any]) -> None:
        priority = PRIORITY_MAX - self._get_message_priority(message)
        self.store.put(queues, dumps(message), priority, moment_ns(message))

    def _size(self, queue: str) -> int:
        self.connection.acks.written()
        return self.store.size(queue)

    def _purge(self, queue: str) -> int:
        self.connection.acks.written()
        return self.store.purge(queue)

    def queue_delete(
        self, queue: str, if_unused: bool = False, if_empty: bool = False, **_: Any
    ) -> None:
        """Delete a queue's messages and bindings."""
        if if_empty and self._size(queue):
            return
        self._purge(queue)
        self.connection.forget(queue)
        self.store.unbind(queue)
        self.state.queue_bindings_delete(queue)

    def _queue_bind(
        self, exchange: str, routing_key: str, pattern: str | None, queue: str
    ) -> None:
        binding = (exchange, routing_key or "", pattern or "", queue)
        self.store.bind(*binding, is_temporary=queue in self.connection.temporary)
        self.connection.bound.add(binding)

    def get_table(self, exchange: str) -> set[tuple[str, str | None, str]]:
        """Return each (routing key, pattern, queue) that any process has bound to an exchange."""
        oldest = time.time() - FORGOTTEN_S
        found: set[tuple[str, str | None, str]] = set()
        for routing_key, pattern, queue, seen in self.store.bindings(exchange):
            if seen is not None and seen < oldest:
                # The queue belonged to a process that died; no other process reads it.
                self.store.purge(queue)
                self.store.unbind(queue)
            else:
                found.add((routing_key, pattern or None, queue))
        return found

    def _lookup(self, exchange: str, routing_key: str, default: str | None = None) -> list[str]:
        # Bindings made by this process need no query; usually these are a task's own queue.
        if exchange and self.typeof(exchange).type == "direct":
            bound, asked = self.connection.bound, (exchange, routing_key)
            if own := [queue for at, key, _, queue in bound if (at, key) == asked]:
                return own
        found: list[str] = super()._lookup(exchange, routing_key, default)
        return found


class Transport(virtual.Transport):
    """The transport for `streamfrom://` URLs."""

    Channel = Channel
    default_port: Any = DEFAULT_PORT
    driver_type = "streamfrom"
    driver_name = "pymysql"
    can_parse_url = False
    polling_interval: Any = None
    connection_errors: Any = (*virtual.Transport.connection_errors, *BROKEN)
    implements = virtual.Transport.implements.extend(
        asynchronous=True,
        exchange_type=frozenset(["direct", "topic", "fanout"]),
        heartbeats=False,
    )

    def __init__(self, client: Any, **options: Any) -> None:
        super().__init__(client, **options)
        given = client.transport_options
        self._ack_wait_s = float(given.get("ack_wait", 30))
        self.bound: set[tuple[str, str, str, str]] = set()
        self.temporary: set[str] = set()
        database = (client.virtual_host or "").strip("/")
        if not database:
            raise ValueError(
                "the broker's URL must name a keyspace: streamfrom://user:password@host:port/keyspace"
            )
        address = {
            "host": client.hostname or "127.0.0.1",
            "port": client.port or DEFAULT_PORT,
            "user": client.userid or "root",
            "password": client.password or "",
            "database": database,
            "ssl": client.ssl or None,
        }
        if client.connect_timeout:
            address["connect_timeout"] = client.connect_timeout
        table, purge_after_s = (
            given.get("table", "celery_message"),
            given.get("purge_after", 3600),
        )
        self.store = CeleryStore(address, table, self._ack_wait_s, purge_after_s)
        self.acks = Acknowledger(self.store, self._ack_wait_s)
        self._seen_s = 0.0
        renew_in_children(self)

    def renew(self) -> None:
        """Start without receivers or messages: a child must not return those of its parent."""
        self._inbox: Inbox | None = None
        self._loop: Any = None
        self._keeper: Keeper | None = None
        for channel in self.channels:
            channel.receiver = channel._qos = None

    def driver_version(self) -> str:
        """Return the version of PyMySQL."""
        return str(pymysql.__version__)

    def establish_connection(self) -> Any:
        """Create the tables and start extending leases and refreshing bindings."""
        self.store.make()
        if self._keeper is None:
            self._seen_s = time.monotonic()
            self._keeper = Keeper(
                self.store, self._ack_wait_s / 3, self._idents, self._show_bindings
            )
        return super().establish_connection()

    def close_connection(self, connection: Any) -> None:
        """Return unacknowledged messages and disconnect."""
        super().close_connection(connection)
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()
        if self._loop is not None:
            self._loop.on_tick.discard(self._want)
            self._loop.remove_reader(self.inbox.sent.fileno())
            self._loop = None
        self.acks.close()
        self.store.close()
        inbox, self._inbox = self._inbox, None
        if inbox is not None:
            inbox.close()

    @property
    def inbox(self) -> Inbox:
        """Received messages, created on first use: a process that only sends tasks has no inbox."""
        if self._inbox is None:
            self._inbox = Inbox()
        return self._inbox

    def forget(self, queue: str) -> None:
        """Stop refreshing the bindings of *queue*."""
        self.bound = {binding for binding in self.bound if binding[3] != queue}

    def drain_events(self, connection: Any, timeout: float | None = None, **_: Any) -> None:
        """Deliver the next messages of any consumer, waiting up to *timeout* seconds, or forever if it is None.

        Raises:
            TimeoutError: no message arrived.
        """
        end_s = None if timeout is None else time.monotonic() + timeout
        while True:
            self._want()
            left_s = LOOK_S if end_s is None else max(end_s - time.monotonic(), 0.0)
            self.inbox.wait(min(left_s, LOOK_S))
            if self._receive():
                return
            if end_s is not None and time.monotonic() >= end_s:
                raise socket.timeout  # noqa: UP041 - kombu catches this name, an alias from 3.10 on

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """Deliver messages from the worker's own event loop."""
        self._loop = loop
        loop.on_tick.add(self._want)
        loop.add_reader(self.inbox.sent.fileno(), self._receive)

    def _want(self) -> None:
        for channel in self.channels:
            channel.want()

    def _receive(self) -> bool:
        news = self.inbox.take()
        if news is None:
            return False
        receiver, rows = news
        for channel in self.channels:
            if channel.receiver is receiver:
                channel.receive(rows)
                channel.want()
                return True
        for row in rows:  # received for a channel that was closed meanwhile
            self.store.give_back(row[0])
        return False

    def _idents(self) -> list[Any]:
        return [ident for channel in list(self.channels) for ident in channel.idents()]

    def _show_bindings(self) -> None:
        """Refresh the bindings of this process's own queues every REFRESH_S seconds."""
        if time.monotonic() - self._seen_s >= REFRESH_S:
            for binding in list(self.bound):
                if binding[3] in self.temporary:
                    self.store.bind(*binding, is_temporary=True)
            self._seen_s = time.monotonic()


def payload_of(row: Row) -> dict[str, Any]:
    """Decode the kombu message in a row (id, epoch, queue, payload)."""
    ident, epoch, _, text = row
    payload: dict[str, Any] = loads(text)
    headers = payload.get("headers")
    if headers and headers.get("eta"):
        # The ETA has passed. A worker that sees it would start its own timer, which is up to a second late.
        headers["eta"] = None
    properties = payload["properties"]
    properties["delivery_tag"] = ident
    if epoch:
        payload["redelivered"] = True
        properties.setdefault("delivery_info", {})["redelivered"] = True
    return payload


def moment_ns(message: dict[str, Any]) -> int:
    """Return when to deliver a task: its ETA in nanoseconds since 1970, or 0 for at once."""
    eta = (message.get("headers") or {}).get("eta")
    if not isinstance(eta, str):
        return 0
    moment = datetime.fromisoformat(eta.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return max(round(moment.timestamp() * 1e6) * 1000, 0)


TRANSPORT_ALIASES["streamfrom"] = "streamfrom_worker.celery:Transport"
