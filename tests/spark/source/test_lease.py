"""What is held is renewed, what is not is not, and a shard that is away does not end it."""

import threading
from typing import Any

from streamfrom.spark.errors import JobError
from streamfrom.spark.source.lease import LeaseRenewer


class Recorder:
    def __init__(self, name, renewed):
        self.name, self.renewed, self.closed = name, renewed, False

    def renew(self, claims, lease_s):
        if self.name == "away":
            raise JobError("away")
        self.renewed.append((self.name, claims, lease_s))

    def close(self):
        self.renewed.append((self.name, "closed", None))


def test_only_what_is_held_is_renewed_until_it_stops():
    renewed: list[Any] = []
    opened: Any = lambda name: Recorder(name, renewed)  # noqa: E731
    renewer = LeaseRenewer(opened, 3600.0)
    renewer.renew_all()
    claims: Any = {"away": {1: [1]}, "80-": {2: [5]}}
    renewer.hold(claims)
    assert renewer.holds(claims)
    renewer.renew_all()
    more: Any = {"80-": {1: [6]}}
    renewer.hold(more)
    renewer.let_go(claims)
    renewer.let_go(claims)
    renewer.renew_all()
    assert renewed == [("80-", {2: [5]}, 3600.0), ("80-", {1: [6]}, 3600.0)]
    renewer.stop()
    assert ("80-", "closed", None) in renewed


def test_it_beats_by_itself_several_times_in_a_lease():
    beaten = threading.Event()

    class Telling(Recorder):
        def renew(self, claims, lease_s):
            super().renew(claims, lease_s)
            if len(self.renewed) > 2:
                beaten.set()

    opened: Any = lambda name: Telling(name, [])  # noqa: E731
    renewer = LeaseRenewer(opened, 0.03)
    renewer.hold({"-80": {1: [1]}})
    assert beaten.wait(60)
    renewer.stop()
