"""One open STREAM: the engine's receiver on one side, a client's socket on the other.

A batch leaves in one write. The link's high-water mark is zero while a stream is open, so
`blocked` means "the socket has not taken everything": such a client gets nothing more until it
has, and if it leaves first, the rows its socket never took go back to the queue at once.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Final

from proxy import net
from proxy.wire.framing import frames


if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.types import ClaimedRow, ShardName
    from proxy.net import Link
    from sqlparse_ext.errors import StreamfromError


_HEADER_BYTES: Final = 4
_ids = count(1)


class Stream:
    """`engine.registry.Receiver` over a client's link.

    Attributes:
        id, shards, columns: what the engine wants to know of a receiver.
        sequence: the number of the next packet.
        ended: done with the error that ends the stream.
    """

    def __init__(
        self,
        link: Link,
        *,
        shards: frozenset[ShardName] | None,
        columns: tuple[str, ...],
        sequence: int,
    ) -> None:
        self.id = next(_ids)
        self.shards = shards
        self.columns = columns
        self.sequence = sequence
        self.ended: asyncio.Future[StreamfromError] = asyncio.get_running_loop().create_future()
        self._link = link
        self._last: Sequence[ClaimedRow] = ()
        link.set_high_water(0)

    def deliver(self, rows: Sequence[ClaimedRow]) -> bool:
        """Write a batch; False when the socket did not take all of it at once."""
        framed, self.sequence = frames([row.payload for row in rows], self.sequence)
        self._last = rows
        self._link.write(framed)
        return not self._link.blocked

    def end(self, error: StreamfromError) -> None:
        """Have the stream end with *error*."""
        if not self.ended.done():
            self.ended.set_result(error)

    def close(self) -> Sequence[ClaimedRow]:
        """Give the link back and return the rows of the last batch that never left."""
        self._link.set_high_water(net.WRITE_HIGH_WATER_BYTES)
        waiting = self._link.unsent_bytes()
        unsent: list[ClaimedRow] = []
        for row in reversed(self._last):
            waiting -= _HEADER_BYTES + len(row.payload)
            if waiting < 0:
                break
            unsent.append(row)
        return unsent
