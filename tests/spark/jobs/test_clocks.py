"""A moment is closed when every clock is a minute past it, and the one that is not is told."""

import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs import clocks
from streamfrom.spark.jobs.clocks import CLOSED_NS, check_closed


NOW_NS = 1_800_000_000 * 10**9
HOUR_NS = 3_600 * 10**9


@pytest.mark.parametrize(
    ("own_ns", "shards_ns", "behind"),
    [
        (NOW_NS, (NOW_NS, NOW_NS), ""),
        (NOW_NS + HOUR_NS, (NOW_NS, NOW_NS + 1), ""),
        (NOW_NS - HOUR_NS, (NOW_NS, NOW_NS), "this machine says 2027-01-15 07:00:00 UTC"),
        (NOW_NS, (NOW_NS, NOW_NS - HOUR_NS), "shard 80- says 2027-01-15 07:00:00 UTC"),
        (NOW_NS, (NOW_NS - 1, NOW_NS), "shard -80 says 2027-01-15 07:59:59 UTC"),
    ],
)
def test_the_clock_that_is_furthest_behind_decides(monkeypatch, own_ns, shards_ns, behind):
    told = dict(zip(("-80", "80-"), shards_ns, strict=True))
    monkeypatch.setattr(clocks, "clock_of", lambda _, shard: told[shard])
    monkeypatch.setattr("time.time_ns", lambda: own_ns)
    commerce = Endpoint("db", 15306, "app", "commerce")
    if not behind:
        check_closed(commerce, tuple(told), NOW_NS - CLOSED_NS, "--to")
        return
    with pytest.raises(
        RequestError,
        match=f"^--to must lie a minute back by every clock, and that of {behind}$",
    ):
        check_closed(commerce, tuple(told), NOW_NS - CLOSED_NS, "--to")
