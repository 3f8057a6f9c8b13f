"""When one shard is polled. Pure.

A poll starts at the end of each interval, when the queue has left rows out, when rows have changed in a way that only
a poll can find out, and a while after a failed poll.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from streamfrom.engine.messaging.gates.shard_gates import Trouble
from streamfrom.engine.messaging.table.message import FOREVER_NS


if TYPE_CHECKING:
    from streamfrom.engine.messaging.order.key_order import KeyOrder
    from streamfrom.engine.messaging.queue.poll import PollRequest, PollResult
    from streamfrom.engine.messaging.queue.shard_queue import ShardQueue


class PollTimes:
    """When *queue* is filled from its shard's rows; one poll runs at a time.

    wanted: rows have changed in a way that only a poll can find out.
    named_wanted: there may be more messages of the keys that streams name than are known.
    next_ns: the end of the interval between two polls.
    trouble: how long polls have been failing.
    """

    def __init__(self, queue: ShardQueue) -> None:
        self.wanted = self.named_wanted = False
        self.next_ns = 0
        self.trouble = Trouble()
        self._queue = queue
        self._is_running = False
        self._is_asked = (
            False  # the running poll has another reason than rows that were left out
        )
        self._is_discarded = False  # the running poll began before the last receiver left
        self._started_ns = 0
        # The earliest poll for `wanted`, and for news only. These polls take half the time at most.
        self._wanted_from_ns = self._news_from_ns = 0

    def begin(self, now_ns: int) -> None:
        """Poll at once for the first stream."""
        self.next_ns = now_ns
        # A running poll may have read before the stream was opened.
        self.wanted |= self._is_running

    def rest(self) -> None:
        """Discard the running poll, and want nothing more."""
        self._is_discarded = self._is_running
        self.wanted = self.named_wanted = False
        self.trouble.over()

    def clock_set_back(self, now_ns: int) -> None:
        """Poll at once: times planned by the former clock would come late."""
        self._wanted_from_ns = self.next_ns = now_ns

    def start(
        self, now_ns: int, order: KeyOrder | None = None, *, in_spans: bool = False
    ) -> PollRequest | None:
        """Return the request if it is time to poll and no poll is running.

        in_spans: of a large queue, a part is enough to find rows that were changed past the proxies.
        """
        is_whole = self._whole_ns() <= now_ns
        if self._is_running or not (is_whole or self._named_ns() <= now_ns):
            return None
        left_out_ns = self._queue.next_poll_ns()
        is_checking = (
            in_spans and not self.wanted and (left_out_ns is None or left_out_ns > now_ns)
        )
        self._is_running = True
        self._is_asked = self._is_to_ask(now_ns) or bool(self._queue.news)
        self.named_wanted = False
        if is_whole:
            self.wanted = False
        self._started_ns = now_ns
        in_part = is_checking and self._queue.is_large
        request = self._queue.poll_started(now_ns, in_spans=in_part)
        if not is_whole:
            return replace(request, is_of_named=True)
        if order is None:
            return request
        return replace(request, passed_over=order.passed_over(now_ns))

    def finished(self, result: PollResult, now_ns: int, interval_ns: int) -> None:
        """Process the result of a poll."""
        self._is_running = self._is_asked = False
        self.trouble.over()
        # A producer whose ids cannot be read from its statements must not keep a server
        # busy with polls alone.
        self._wanted_from_ns = now_ns + (now_ns - self._started_ns)
        self._news_from_ns = self._wanted_from_ns if result.is_of_named else now_ns
        if not result.is_of_named:
            self.next_ns = self._started_ns + interval_ns
        if self._is_discarded:
            self._is_discarded = False
            self.next_ns = now_ns
            self._queue.poll_failed()
        else:
            self._queue.poll_finished(result, now_ns)
            self.wanted |= self._queue.is_torn

    def failed(self, reason: str, now_ns: int, grace_ns: int) -> None:
        """Note that a poll failed; it is wanted again after a pause."""
        self._is_running = self._is_asked = self._is_discarded = False
        self.wanted = True
        self.trouble.failed(reason, now_ns, grace_ns)
        self._queue.poll_failed()

    def start_ns(self) -> int:
        """Return when the next poll starts, unless an event comes before."""
        return FOREVER_NS if self._is_running else min(self._whole_ns(), self._named_ns())

    def is_resting(self, now_ns: int) -> bool:
        """Return whether no poll is running and none is due."""
        return not self._is_running and self._whole_ns() > now_ns and not self.wanted

    def is_asking(self, now_ns: int) -> bool:
        """Return whether a poll is running, or due, for another reason than rows that were left out."""
        return self._is_asked or self._is_to_ask(now_ns)

    def _is_to_ask(self, now_ns: int) -> bool:
        return self.wanted or self.named_wanted or self.next_ns <= now_ns

    def _whole_ns(self) -> int:
        """Return when the next poll of all keys starts."""
        moment = self.next_ns
        left_out_ns = self._queue.next_poll_ns()
        if left_out_ns is not None:
            moment = min(moment, left_out_ns)
        if self.wanted:
            moment = min(moment, self._wanted_from_ns)
        return max(moment, self.trouble.retry_ns)

    def _named_ns(self) -> int:
        """Return when the next poll starts for the keys that streams name, or for the keys of news."""
        moment = self._news_from_ns if self._queue.news else FOREVER_NS
        if self._queue.named:
            left_out_ns = self._queue.next_poll_ns(self._queue.named)
            moment = moment if left_out_ns is None else min(moment, left_out_ns)
            if self.named_wanted:
                moment = min(moment, self._wanted_from_ns)
        return max(moment, self.trouble.retry_ns)
