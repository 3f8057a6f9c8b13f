"""The order in which polls read a long queue again, a part of its lanes at a time. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.queue.poll import KeySpan, PollPart


if TYPE_CHECKING:
    from streamfrom.engine.messaging.queue.lanes import Tier
    from streamfrom.engine.messaging.queue.poll import SpanRead


# The parts of a tier, in the order in which they are read again, and the very first.
_PARTS: Final = (PollPart.NULL, PollPart.ZERO, PollPart.TIMED)
_FIRST: Final = (-(2**63), 0, b"")
# More lanes need more polls.
SPANS_MAX: Final = 30


class SpanWalk:
    """Where the next span begins; after the last lane comes the first one."""

    def __init__(self) -> None:
        # Priority, part of its lane, and a moment or the id before it.
        self._at: tuple[int, int, int | bytes] = _FIRST
        # How many more keys were read than wanted at each interval.
        self._read_ahead = 0

    def next(
        self, tiers: Mapping[int, Tier], span_keys: int, not_waiting: int
    ) -> tuple[KeySpan, ...]:
        """Return the next parts of lanes, about *span_keys* keys.

        tiers: by priority; at least one.
        not_waiting: how many rows polls may find that are not in the lanes.
        """
        spans: list[KeySpan] = []
        room = span_keys - self._read_ahead
        if room <= 0:
            return ()
        lanes = [(priority, part) for priority in sorted(tiers) for part in range(len(_PARTS))]
        at = bisect_left(lanes, self._at[:2]) % len(lanes)
        for turn in range(min(len(lanes), SPANS_MAX)):
            priority, part = lanes[(at + turn) % len(lanes)]
            tier = tiers[priority]
            begins = self._at[2] if self._at[:2] == (priority, part) else None
            if _PARTS[part] is not PollPart.TIMED:
                if not tier.fresh.more:
                    after = begins if isinstance(begins, bytes) else b""
                    spans.append(KeySpan(priority, _PARTS[part], room, after=after))
                    # The lane has both parts, one of which is usually empty.
                    room -= len(tier.fresh) if _PARTS[part] is PollPart.ZERO else 0
                if room <= 0:
                    break
                continue
            lane = tier.timed
            from_ns = max(begins if isinstance(begins, int) else 0, lane.floor_ns)
            start = lane.keys.bisect_key_left((from_ns,))
            end = min(len(lane), start + room)
            room -= end - start
            to_ns = lane.horizon_ns if end == len(lane) else lane.keys[end].time_next_ns
            # Rows that do not wait here are read as well, and others may have come.
            limit = lane.due(to_ns) - start + not_waiting + span_keys
            spans.append(KeySpan(priority, PollPart.TIMED, limit, from_ns=from_ns, to_ns=to_ns))
            if room <= 0:
                break
        return tuple(spans)

    def has_read(self, read: SpanRead, horizon_ns: int | None) -> None:
        """Move past a span that was read. horizon_ns: up to which moment its lane is known, for a lane of moments."""
        span, part = read.span, _PARTS.index(read.span.part)
        is_last = part + 1 == len(_PARTS)
        if horizon_ns is None and read.more:
            self._at = span.priority, part, read.keys[-1].id
        elif horizon_ns is not None and span.to_ns < horizon_ns:
            self._at = span.priority, part, span.to_ns + 1
        else:
            self._at = (
                (span.priority + 1, 0, b"") if is_last else (span.priority, part + 1, b"")
            )

    def rests_after(self, keys: int, span_keys: int) -> None:
        """Make the next intervals read less if *keys*, which were read, are more than *span_keys*."""
        self._read_ahead = max(0, self._read_ahead + keys - span_keys)
