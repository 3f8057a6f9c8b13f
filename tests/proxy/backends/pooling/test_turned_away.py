"""Statements that get no connection: one line of each kind in a while, with their number."""

import structlog

from streamfrom.proxy.backends.pooling.turned_away import TurnedAway
from streamfrom.proxy.errors import BackendLost, NoDescriptor, PoolTimeout
from streamfrom.proxy.log import QUIET_S


def test_each_kind_has_a_line_at_once_and_then_seldom_with_the_number_of_all():
    now_s = [5.0]
    with structlog.testing.capture_logs() as logs:
        turned_away = TurnedAway(structlog.get_logger(), "db:3306", lambda: now_s[0])
        full = PoolTimeout("ks", "-80", 10)
        turned_away.note(full)
        turned_away.note(NoDescriptor("ks", "-80"))
        turned_away.note(BackendLost("ks", "-80"))
        for _ in range(7):
            turned_away.note(full)
        now_s[0] += QUIET_S
        turned_away.note(full)
    told = [(line["event"], line["count"]) for line in logs]
    no_descriptor = "no file descriptor left for a connection to a shard"
    assert told == [("no free connection", 1), (no_descriptor, 1), ("no free connection", 8)]
    assert {line["server"] for line in logs} == {"db:3306"}
    assert "-80" in logs[0]["reason"]
