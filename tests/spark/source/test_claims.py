"""Ids in JSON and back; claiming itself is `test_queue_db.py`."""

import threading
from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import JobError
from streamfrom.spark.source.claims import ClaimShard, LeaseRenewer


def shard_of(kind):
    columns = {"id": kind, "last_error": "varchar(9)"}
    return ClaimShard(Endpoint("127.0.0.1", 1, "u", "ks"), "-80", "t", columns)


@pytest.mark.parametrize(
    ("kind", "ident", "sent"),
    [
        ("varchar(9)", "it's", "it's"),
        ("binary(2)", "00ff", b"\x00\xff"),
        ("decimal(10,2)", "1.50", Decimal("1.50")),
    ],
)
def test_an_id_is_sent_as_what_it_is(kind, ident, sent):
    assert shard_of(kind).where_ids([ident, ident]) == ("id IN (%s, %s)", (sent, sent))


def test_whole_numbers_are_written_by_us_which_is_faster_than_the_driver():
    shard = shard_of("bigint(20) unsigned")
    assert shard.where_ids([2**64 - 1, 7]) == ("id IN (18446744073709551615, 7)", ())
    with pytest.raises(ValueError, match="invalid literal"):
        shard.where_ids(["1) OR (1"])


def test_a_shard_that_cannot_be_reached_is_named():
    with pytest.raises(JobError, match=r"127.0.0.1:1 cannot be reached"):
        shard_of("int").count_due()


def test_what_is_due_and_how_long_it_is_kept_follow_the_servers_clock(monkeypatch):
    shard = shard_of("int")
    changed = []
    claims = "streamfrom.spark.source.claims"
    monkeypatch.setattr(shard, "_session", nullcontext)
    monkeypatch.setattr(f"{claims}.ask", lambda *given: [(b"86400000001",)])

    def change(connection, sql, values):
        changed.append((sql.partition(" WHERE")[0], values))
        return 1

    monkeypatch.setattr(f"{claims}.changed", change)
    shard.ack([5])
    shard.renew({1: [5]}, 10.0)
    shard.put_back(3, [5], 30.0, "much too long")
    shard.put_back(3, [5], 30.0, None)
    day_ns = 86_400_000_001_000
    then_ns, set_time = day_ns + 3 * 10**10, "UPDATE `t` SET time_next = %s"
    assert changed == [
        ("UPDATE `t` SET time_acked = %s, time_next = NULL", [day_ns]),
        (set_time, [day_ns + 10**10, 1]),
        (f"{set_time}, last_error = %s", [then_ns, "much too ", 3]),
        # What was no fault of theirs does not count.
        (f"{set_time}, epoch = 2", [then_ns, 3]),
    ]


class Renewed:
    def __init__(self, name, renewed):
        self.name, self.renewed = name, renewed

    def renew(self, claims, lease_s):
        if self.name == "away":
            raise JobError("away")
        self.renewed.append((self.name, claims, lease_s))


def test_only_what_is_held_is_renewed_until_it_stops():
    renewed: list[Any] = []
    opened: Any = lambda name: Renewed(name, renewed)  # noqa: E731
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


def test_it_beats_by_itself_several_times_in_a_lease():
    beaten = threading.Event()

    class Telling(Renewed):
        def renew(self, claims, lease_s):
            super().renew(claims, lease_s)
            if len(self.renewed) > 2:
                beaten.set()

    shard: Any = Telling("-80", [])
    renewer = LeaseRenewer(lambda _: shard, 0.03)
    renewer.hold({"-80": {1: [1]}})
    assert beaten.wait(60)
    renewer.stop()
