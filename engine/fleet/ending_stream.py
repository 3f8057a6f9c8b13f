"""A stream with an end, `LIMIT n`, whose rows come from several dispatchers. Pure.

Each dispatcher is asked for all of it, so what comes beyond the limit is given back. It ends when it has its rows, or
when all dispatchers have given what was due; once the first row has come, none waits for a first one any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message import ClientReceiver, RowOfStream
    from streamfrom.sqlparse_ext.errors import StreamfromError


class EndingStream:
    """Stands before the client's receiver: `ClientReceiver`, under the same number.

    Attributes:
        rows_left: how many rows it still takes.
        surplus: rows that came beyond the limit.
        is_waiting: nothing has come, and the time for that is not over.
        is_done_here: what is dispatched in this process has given what was due.

    on_first: called when the first row has come.
    others_done: returns whether the other dispatchers have given what was due.
    """

    def __init__(
        self,
        client: ClientReceiver,
        rows_max: int,
        on_first: Callable[[], None],
        others_done: Callable[[], bool],
    ) -> None:
        self.id = client.id
        self.shards = client.shards
        self.keys = client.keys
        self.columns = client.columns
        self.prefetch = client.prefetch
        self.window_first = client.window_first
        self.connection_id = client.connection_id
        self.rows_left = rows_max
        self.surplus: list[RowOfStream] = []
        self.is_waiting = True
        self.is_done_here = False
        self._client = client
        self._on_first = on_first
        self._others_done = others_done
        self._is_ready = True
        self._is_over = False

    @property
    def rows_max(self) -> int:
        """Return how many rows it is to be given from now on."""
        return self.rows_left

    def deliver(self, rows: Sequence[RowOfStream]) -> bool:
        """Write *rows* as far as the limit goes."""
        given, surplus = rows[: self.rows_left], rows[self.rows_left :]
        if given:
            self._is_ready = self._client.deliver(given)
            self.rows_left -= len(given)
            if self.is_waiting:
                self.is_waiting = False
                self._on_first()
        self.surplus += surplus
        self.check()
        return self._is_ready

    def ready(self) -> None:
        """Note that the client's socket has taken everything."""
        self._is_ready = True
        self.check()

    def finish(self) -> None:
        """Note that what is dispatched here has given what was due."""
        self.is_done_here = True
        self.check()

    def end(self, error: StreamfromError) -> None:
        """Finish the stream with *error*."""
        if not self._is_over:
            self._is_over = True
            self._client.end(error)

    def check(self) -> None:
        """Finish the client's stream if it has its rows, or all there are."""
        # Not before the client's socket has taken everything: the end would pass rows that
        # still wait.
        is_complete = self.rows_left == 0 or (self.is_done_here and self._others_done())
        if is_complete and self._is_ready and not self._is_over:
            self._is_over = True
            self._client.finish()
