"""One open STREAM, between the engine's receiver and a client's socket.

A batch is sent in one write, or in several if it is large. The link's high-water mark is zero while a stream is open,
so `blocked` means that the socket has not taken everything. The client then gets nothing more until the socket has
taken it all. If the client leaves first, the rows that were not handed to its socket go back to the queue at once. How
much of a write the socket had taken is not known once the connection is lost; that concerns one write at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import ReceiverGone
from streamfrom.engine.messaging.streams.prefetch_window import FIRST
from streamfrom.engine.messaging.table.message import RowOfStream, receiver_numbers
from streamfrom.proxy import net
from streamfrom.proxy.errors import ProxyError
from streamfrom.proxy.wire.framing import frames


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.proxy.net import Link
    from streamfrom.sqlparse_ext.errors import StreamfromError


# A batch of small rows is one write; a large row is a write by itself.
_WRITE_BYTES: Final = 64 << 10
# A stream with a limit that has its rows at once is one write, not three, each of which wakes the client.
JOINED_WITHIN_S: Final = 0.002


class MessageStream:
    """`engine.messaging.table.message.Receiver` over a client's link, with the attributes that the engine reads.

    encode: turns the text rows that the engine delivers into what this client reads.

    Attributes:
        sequence: the number of the next packet.
        ended: done when the stream ends, with its error, or None once it has its rows.
    """

    def __init__(
        self,
        link: Link,
        *,
        shards: frozenset[ShardName] | None,
        keys: frozenset[bytes] | None = None,
        columns: tuple[str, ...],
        sequence: int,
        prefetch: int | None = None,
        window_first: int = FIRST,
        rows_max: int | None = None,
        connection_id: int = 0,
        encode: Callable[[Sequence[RowOfStream]], list[bytes]] | None = None,
    ) -> None:
        self.id = next(receiver_numbers)
        self.shards = shards
        self.keys = keys
        self.columns = columns
        self.prefetch = prefetch
        self.window_first = window_first
        self.rows_max = rows_max
        self.connection_id = connection_id
        self.sequence = sequence
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[StreamfromError | None] = loop.create_future()
        self._link = link
        self._encode = encode
        self._waiting: Sequence[RowOfStream] = ()
        self._rows_left = rows_max
        link.set_high_water(0)

    def deliver(self, rows: Sequence[RowOfStream]) -> bool:
        """Write a batch; False when the socket did not take all of it at once. Raises ReceiverGone if the client has left."""
        if self._link.is_gone:
            raise ReceiverGone
        self._waiting = [*self._waiting, *rows]
        return self.resume()

    def resume(self) -> bool:
        """Write the rows that wait, as far as the socket takes them; True when it could take more."""
        while self._waiting and not self._link.blocked and not self._link.is_gone:
            count = size = 0
            while count < len(self._waiting) and size < _WRITE_BYTES:
                size += len(self._waiting[count].payload)
                count += 1
            now, self._waiting = self._waiting[:count], self._waiting[count:]
            if self._encode is None:
                payloads = [row.payload for row in now]
            else:
                try:
                    payloads = self._encode(now)
                except ProxyError as error:
                    # The error is this stream's alone, and must not reach the engine or other streams.
                    self._waiting = [*now, *self._waiting]
                    self.end(error)
                    return False
            framed, self.sequence = frames(payloads, self.sequence)
            if self._rows_left is not None:
                self._rows_left -= count
            if self._rows_left == 0:
                self._link.write_ahead(framed, JOINED_WITHIN_S)  # the end follows
            else:
                self._link.write(framed)
        return not self._waiting and not self._link.blocked

    def end(self, error: StreamfromError) -> None:
        """End the stream with *error*."""
        if not self.ended.done():
            self.ended.set_result(error)

    def finish(self) -> None:
        """End the stream, which has its rows."""
        if not self.ended.done():
            self.ended.set_result(None)

    def close(self) -> Sequence[RowOfStream]:
        """Give the link back and return the rows that were not handed to it."""
        self._link.set_high_water(net.WRITE_HIGH_WATER_BYTES)
        return self._waiting
