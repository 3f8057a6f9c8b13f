"""The clients of both sides: consumers of the proxy, and open-loop producers.

Each function returns the coroutine of a worker process (see `bench.fleet`).
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from bench import messages
from bench.connection import Connection
from bench.fleet import Signals, Work


PRODUCING: Final = 8  # connections of a producer
OPENING_AT_ONCE: Final = 50  # connections; a server's backlog of unaccepted ones is bounded


@dataclass(slots=True)
class Received:
    """The deliveries to the consumers of one process: parallel lists with one item per delivery.

    last_ack_ns: wall clock after the last acknowledgement.
    """

    ids: list[int] = field(default_factory=list)
    arrived_ns: list[int] = field(default_factory=list)
    last_ack_ns: int = 0

    def add(self, ids: Sequence[int], arrived_ns: int) -> None:
        """Record the arrival of *ids*."""
        self.ids.extend(ids)
        self.arrived_ns.extend([arrived_ns] * len(ids))


@dataclass(slots=True)
class Sent:
    """The messages of a producer: parallel lists with one item per committed message.

    committed_ns: when the COMMIT's OK arrived.
    """

    ids: list[int] = field(default_factory=list)
    committed_ns: list[int] = field(default_factory=list)


def consumers(
    port: int,
    database: str,
    table: str,
    *,
    count: int,
    ack_batch: int,
    ack_connections: int = 0,
    stream_first: bool = False,
    hint: str = "/*vt+ PREFETCH=0 */",
) -> Work:
    """Return *count* consumers. Each streams on its own connection and acks on another.

    ack_batch: the maximum number of ids in one acknowledgement.
    ack_connections: how many connections all consumers share for acks; 0 gives each consumer its own.
    stream_first: STREAM before the common start, not after it.
    hint: by default, the consumers are sent every due message.
    """

    sql = f"STREAM {hint} id, message FROM {table}"

    async def work(signals: Signals) -> Received:
        received = Received()
        streams = await open_many(port, database, count)
        ackers = await open_many(port, database, ack_connections or count)
        queues = [_AckQueue(one, table, ack_batch, received, signals.count) for one in ackers]
        if stream_first:
            await _start_streams(streams, sql)
        await signals.start()
        if not stream_first:
            await _start_streams(streams, sql)

        async def consume(stream: Connection, acks: "_AckQueue") -> None:
            while True:
                for arrived_ns, rows in await stream.batches():
                    ids = [int(row[0] or 0) for row in rows]
                    received.add(ids, arrived_ns)
                    acks.put(ids)

        await signals.until_stopped(
            *(queue.run() for queue in queues),
            *(
                consume(stream, queues[number % len(queues)])
                for number, stream in enumerate(streams)
            ),
        )
        for one in (*streams, *ackers):
            one.close()
        return received

    return work


def producer(
    port: int,
    database: str,
    table: str,
    *,
    per_second: int,
    seconds: float,
    rows: int = 1,
    first_id: int = 1,
) -> Work:
    """Return an open-loop producer of autocommitted INSERTs of *rows* messages each.

    The schedule does not wait for replies, so a stall delays no later message.
    """

    async def work(signals: Signals) -> Sent:
        sent = Sent()
        pool = await open_many(port, database, PRODUCING)
        waiting: asyncio.Queue[range | None] = asyncio.Queue()

        async def send(connection: Connection) -> None:
            while (ids := await waiting.get()) is not None:
                await connection.query(messages.insert(table, ids))
                sent.ids.extend(ids)
                sent.committed_ns.extend([time.time_ns()] * rows)

        start_ns = await signals.start()
        interval_ns = messages.NS_PER_S * rows // per_second
        inserts = int(seconds * per_second) // rows
        senders = [asyncio.ensure_future(send(connection)) for connection in pool]
        for number in range(inserts):
            early_ns = start_ns + number * interval_ns - time.time_ns()
            if early_ns > 0:
                await asyncio.sleep(early_ns / messages.NS_PER_S)
            first = first_id + number * rows
            waiting.put_nowait(range(first, first + rows))
        for _ in pool:
            waiting.put_nowait(None)
        await asyncio.gather(*senders)
        for connection in pool:
            connection.close()
        return sent

    return work


async def open_many(port: int, database: str, count: int) -> list[Connection]:
    """Open *count* connections."""
    opened: list[Connection] = []
    while len(opened) < count:
        some = min(OPENING_AT_ONCE, count - len(opened))
        opened += await asyncio.gather(*(Connection.open(port, database) for _ in range(some)))
    return opened


@dataclass(slots=True)
class _AckQueue:
    """Acknowledges ids in order, one statement at a time."""

    connection: Connection
    table: str
    batch: int
    received: Received
    count: Callable[[int], None]
    _waiting: deque[int] = field(default_factory=deque)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, ids: Sequence[int]) -> None:
        self._waiting.extend(ids)
        self._news.set()

    async def run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                size = min(self.batch, len(self._waiting))
                ids = [self._waiting.popleft() for _ in range(size)]
                text = messages.ack(self.table, ids, time.time_ns())
                answer = await self.connection.query(text)
                self.received.last_ack_ns = time.time_ns()
                self.count(answer.affected)


async def _start_streams(streams: Sequence[Connection], sql: str) -> None:
    for first in range(0, len(streams), OPENING_AT_ONCE):
        some = streams[first : first + OPENING_AT_ONCE]
        await asyncio.gather(*(stream.stream(sql) for stream in some))
