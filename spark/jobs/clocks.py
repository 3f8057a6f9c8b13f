"""Which moments lie behind every clock, so that what was acknowledged before them no longer changes."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from streamfrom.spark.endpoint import Endpoint, clock_of
from streamfrom.spark.errors import RequestError


# By then a transaction that acknowledges has been committed.
CLOSED_NS: Final = 60 * 10**9


def check_closed(
    endpoint: "Endpoint", shards: "Sequence[str]", until_ns: int, option: str
) -> None:
    """Make sure that *until_ns*, the value of *option*, lies a minute back by this machine's clock and by those of the shards.

    Raises:
        RequestError: it does not; the clock that is furthest behind is named, since it may be wrong.
    """
    clocks_ns = {"this machine": time.time_ns()}
    clocks_ns |= {f"shard {shard}": clock_of(endpoint, shard) for shard in shards}
    now_ns, last = min((now_ns, place) for place, now_ns in clocks_ns.items())
    if until_ns > now_ns - CLOSED_NS:
        told = datetime.fromtimestamp(now_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
        raise RequestError(
            f"{option} must lie a minute back by every clock, and that of {last} says {told} UTC"
        )
