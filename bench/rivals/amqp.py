"""A lean client of AMQP 0-9-1, as much of it as a queue's producers and consumers need.

Numbers of classes and methods, and the forms of frames, are those of the specification (amqp0-9-1.xml).
"""

import asyncio
import struct
import time
from typing import TYPE_CHECKING, Final, Self, cast


if TYPE_CHECKING:
    from collections.abc import Sequence

HOST: Final = "127.0.0.1"
FRAME_END: Final = b"\xce"
METHOD, HEADER, BODY = 1, 2, 3

START, START_OK = (10, 10), (10, 11)
TUNE, TUNE_OK = (10, 30), (10, 31)
OPEN, OPEN_OK = (10, 40), (10, 41)
CLOSE: Final = (10, 50)
CHANNEL_OPEN, CHANNEL_OPEN_OK, CHANNEL_CLOSE = (20, 10), (20, 11), (20, 40)
DECLARE, DECLARE_OK = (50, 10), (50, 11)
DELETE, DELETE_OK = (50, 40), (50, 41)
QOS, QOS_OK = (60, 10), (60, 11)
CONSUME, CONSUME_OK = (60, 20), (60, 21)
PUBLISH, DELIVER, ACK = (60, 40), (60, 60), (60, 80)
CONFIRM, CONFIRM_OK = (85, 10), (85, 11)
HEARTBEAT_S: Final = 0
FRAME_BYTES_MAX: Final = 131_072
# Of basic properties: delivery-mode alone, 2 for a message that is kept on disk.
PERSISTENT: Final = struct.pack(">HB", 1 << 12, 2)


class Broken(Exception):
    """The broker refused something, or the connection ended."""


class AmqpConnection(asyncio.Protocol):
    """One connection with one channel, for one task at a time; `open` returns it ready."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._answers: dict[tuple[int, int], asyncio.Future[bytes]] = {}
        self._tag = 0
        self._body = b""
        self._body_bytes = 0
        self._arrived: list[tuple[int, int, bytes]] = []
        self._news: asyncio.Future[None] | None = None
        self._published = 0
        self._confirmed = 0
        self._error: Exception | None = None

    @classmethod
    async def open(cls, port: int) -> Self:
        """Connect to 127.0.0.1:*port* as guest and open a channel.

        Raises:
            Broken: the broker refused.
        """
        self = cls()
        _, _ = await asyncio.get_running_loop().create_connection(lambda: self, HOST, port)
        start = self._expect(START)
        self._write(b"AMQP\0\0\x09\x01")
        await start
        await self._ask(
            0,
            START_OK,
            struct.pack(">I", 0) + _short("PLAIN") + _long(b"\0guest\0guest") + _short("en_US"),
            TUNE,
        )
        self._method(0, TUNE_OK, struct.pack(">HIH", 1, FRAME_BYTES_MAX, HEARTBEAT_S))
        await self._ask(0, OPEN, _short("/") + _short("") + b"\0", OPEN_OK)
        await self._ask(1, CHANNEL_OPEN, _short(""), CHANNEL_OPEN_OK)
        return self

    async def declare(self, queue: str) -> None:
        """Make a durable quorum queue."""
        kind = _short("x-queue-type") + b"S" + _long(b"quorum")
        await self._ask(
            1, DECLARE, b"\0\0" + _short(queue) + bytes([0b10]) + _long(kind), DECLARE_OK
        )

    async def delete(self, queue: str) -> None:
        """Remove a queue and what is in it."""
        await self._ask(1, DELETE, b"\0\0" + _short(queue) + b"\0", DELETE_OK)

    async def confirm(self) -> None:
        """Have what is published from now on confirmed."""
        await self._ask(1, CONFIRM, b"\0", CONFIRM_OK)

    async def publish(self, queue: str, bodies: "Sequence[bytes]") -> None:
        """Send persistent messages, and return when the broker has confirmed all of them."""
        for body in bodies:
            self._method(1, PUBLISH, b"\0\0" + _short("") + _short(queue) + b"\0")
            header = struct.pack(">HHQ", 60, 0, len(body)) + PERSISTENT
            self._write(_frame(HEADER, 1, header) + _frame(BODY, 1, body))
        self._published += len(bodies)
        while self._confirmed < self._published:
            await self._wait()

    async def consume(self, queue: str, prefetch: int) -> None:
        """Have the messages of a queue delivered, *prefetch* at a time without their acks."""
        await self._ask(1, QOS, struct.pack(">IHB", 0, prefetch, 0), QOS_OK)
        await self._ask(
            1, CONSUME, b"\0\0" + _short(queue) + _short("") + b"\0" + _long(b""), CONSUME_OK
        )

    async def batches(self) -> list[tuple[int, int, bytes]]:
        """Return what has arrived since the last call, at least one: wall clock in ns, tag and body of each."""
        while not self._arrived:
            await self._wait()
        arrived, self._arrived = self._arrived, []
        return arrived

    def ack(self, tag: int, *, multiple: bool = False) -> None:
        """Acknowledge a message, or all up to it; there is no answer."""
        self._method(1, ACK, struct.pack(">QB", tag, multiple))

    async def settle(self, queue: str) -> None:
        """Return when the broker has read all that was sent before."""
        await self._ask(1, DECLARE, b"\0\0" + _short(queue) + b"\x01" + _long(b""), DECLARE_OK)

    def close(self) -> None:
        """Hang up, without a goodbye."""
        self._error = Broken("the connection was closed here")
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(Broken(f"the connection was closed: {exc}"))

    def data_received(self, data: bytes) -> None:
        now_ns = time.time_ns()
        if self._rest:
            data = self._rest + data
        position, size = 0, len(data)
        while size - position >= 8:
            kind = data[position]
            end = position + 7 + int.from_bytes(data[position + 3 : position + 7], "big")
            if end >= size:
                break
            self._frame_received(kind, data[position + 7 : end], now_ns)
            position = end + 1
        self._rest = data[position:]

    def _frame_received(self, kind: int, payload: bytes, now_ns: int) -> None:
        if kind == BODY:
            self._body += payload
            if len(self._body) >= self._body_bytes:
                self._arrived.append((now_ns, self._tag, self._body))
                self._wake()
        elif kind == HEADER:
            self._body, self._body_bytes = b"", int.from_bytes(payload[4:12], "big")
        elif kind == METHOD:
            method = struct.unpack_from(">HH", payload)
            if method == DELIVER:
                # Behind the consumer's tag.
                self._tag = int.from_bytes(payload[5 + payload[4] : 13 + payload[4]], "big")
            elif method == ACK:
                tag, multiple = struct.unpack_from(">QB", payload, 4)
                self._confirmed = tag if multiple else self._confirmed + 1
                self._wake()
            elif method in (CLOSE, CHANNEL_CLOSE):
                self._fail(Broken(payload[7:].decode(errors="replace")))
            elif (waiter := self._answers.pop(method, None)) is not None:
                waiter.set_result(payload)

    def _expect(self, method: tuple[int, int]) -> "asyncio.Future[bytes]":
        if self._error is not None:
            raise self._error
        self._answers[method] = asyncio.get_running_loop().create_future()
        return self._answers[method]

    async def _ask(
        self, channel: int, method: tuple[int, int], arguments: bytes, answer: tuple[int, int]
    ) -> bytes:
        expected = self._expect(answer)
        self._method(channel, method, arguments)
        return await expected

    def _method(self, channel: int, method: tuple[int, int], arguments: bytes) -> None:
        self._write(_frame(METHOD, channel, struct.pack(">HH", *method) + arguments))

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    async def _wait(self) -> None:
        if self._error is None:
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        if self._error is not None:
            raise self._error

    def _wake(self) -> None:
        news, self._news = self._news, None
        if news is not None and not news.done():
            news.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._error = error
        for answer in self._answers.values():
            answer.set_exception(error)
        self._answers.clear()
        self._wake()


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + FRAME_END


def _short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def _long(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data
