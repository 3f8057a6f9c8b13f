"""The clients of both sides: consumers of the proxy, and open-loop producers.

Each function returns the coroutine of a worker process (see `bench.fleet`).
"""

import asyncio
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from bench import messages
from bench.connection import Connection
from bench.fleet import Signals, Work


OPENING_AT_ONCE: Final = 50  # connections; a server's backlog of unaccepted ones is bounded


def numbers() -> "array[int]":
    """Return an empty array of 64-bit numbers: compact, and cheap to send to the parent."""
    return array("q")


@dataclass(slots=True)
class Received:
    """What the consumers of one process got: parallel arrays, a place per delivery.

    acked: rows the acknowledgements changed.
    last_ack_ns: wall clock after the last acknowledgement.
    """

    ids: "array[int]" = field(default_factory=numbers)
    arrived_ns: "array[int]" = field(default_factory=numbers)
    acked: int = 0
    last_ack_ns: int = 0

    def add(self, ids: Sequence[int], arrived_ns: int) -> None:
        """Note the arrival of *ids*."""
        self.ids.extend(ids)
        self.arrived_ns.extend([arrived_ns] * len(ids))

    def note_ack(self, affected: int) -> None:
        """Note an acknowledgement that was just answered."""
        self.acked += affected
        self.last_ack_ns = time.time_ns()


@dataclass(slots=True)
class Sent:
    """What a producer sent: parallel arrays, a place per committed message.

    intended_ns: when the schedule wanted it sent, whether or not that was possible.
    committed_ns: when the COMMIT's OK had come back.
    """

    ids: "array[int]" = field(default_factory=numbers)
    intended_ns: "array[int]" = field(default_factory=numbers)
    committed_ns: "array[int]" = field(default_factory=numbers)


def consumers(
    port: int,
    database: str,
    table: str,
    *,
    count: int,
    ack_batch: int,
    ack_connections: int = 0,
    stream_first: bool = False,
) -> Work:
    """Return *count* consumers: each streams on a connection of its own and acks on another.

    ack_batch: at most so many ids in one acknowledgement.
    ack_connections: 0 gives each consumer its own; otherwise all share so many.
    stream_first: STREAM before the common start, not after it.
    """

    async def work(signals: Signals) -> Received:
        received = Received()
        streams = await open_many(port, database, count)
        ackers = await open_many(port, database, ack_connections or count)
        queues = [_AckQueue(one, table, ack_batch, received, signals.count) for one in ackers]
        if stream_first:
            await _start_streams(streams, table)
        await signals.start()
        if not stream_first:
            await _start_streams(streams, table)

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
    connections: int = 8,
) -> Work:
    """Return an open-loop producer of autocommitted INSERTs of *rows* messages each, ids from 1.

    A message that cannot be sent in time is sent late, and its intended moment tells: that is
    what keeps a stall from being left out of the percentiles (coordinated omission).
    """

    async def work(signals: Signals) -> Sent:
        sent = Sent()
        pool = await open_many(port, database, connections)
        waiting: asyncio.Queue[tuple[range, int] | None] = asyncio.Queue()

        async def send(connection: Connection) -> None:
            while (job := await waiting.get()) is not None:
                ids, intended_ns = job
                await connection.query(messages.insert(table, ids))
                sent.ids.extend(ids)
                sent.intended_ns.extend([intended_ns] * rows)
                sent.committed_ns.extend([time.time_ns()] * rows)

        start_ns = await signals.start()
        interval_ns = messages.NS_PER_S * rows // per_second
        inserts = int(seconds * per_second) // rows
        senders = [asyncio.ensure_future(send(connection)) for connection in pool]
        number = 0
        while number < inserts and not signals.stopping.is_set():
            now_ns = time.time_ns()
            while number < inserts and start_ns + number * interval_ns <= now_ns:
                ids = range(number * rows + 1, (number + 1) * rows + 1)
                waiting.put_nowait((ids, start_ns + number * interval_ns))
                number += 1
            await asyncio.sleep(interval_ns / messages.NS_PER_S)
        for _ in pool:
            waiting.put_nowait(None)
        await asyncio.gather(*senders)
        for connection in pool:
            connection.close()
        return sent

    return work


async def open_many(port: int, database: str, count: int) -> list[Connection]:
    """Return *count* connections."""
    opened: list[Connection] = []
    while len(opened) < count:
        some = min(OPENING_AT_ONCE, count - len(opened))
        opened += await asyncio.gather(*(Connection.open(port, database) for _ in range(some)))
    return opened


class _AckQueue:
    """Acknowledges what is put into it, in order, one statement at a time."""

    def __init__(
        self,
        connection: Connection,
        table: str,
        batch: int,
        received: Received,
        count: Callable[[int], None],
    ) -> None:
        self._connection = connection
        self._table = table
        self._batch = batch
        self._received = received
        self._count = count
        self._waiting: deque[int] = deque()
        self._news = asyncio.Event()

    def put(self, ids: Sequence[int]) -> None:
        self._waiting.extend(ids)
        self._news.set()

    async def run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                size = min(self._batch, len(self._waiting))
                ids = [self._waiting.popleft() for _ in range(size)]
                text = messages.ack(self._table, ids, time.time_ns())
                answer = await self._connection.query(text)
                self._received.note_ack(answer.affected)
                self._count(answer.affected)


async def _start_streams(streams: Sequence[Connection], table: str) -> None:
    for first in range(0, len(streams), OPENING_AT_ONCE):
        await asyncio.gather(
            *(
                stream.stream(f"STREAM /*vt+ PREFETCH=0 */ id, message FROM {table}")
                for stream in streams[first : first + OPENING_AT_ONCE]
            )
        )
