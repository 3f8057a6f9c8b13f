"""Ids in JSON and back; claiming itself is `test_queue_db.py`."""

import ast
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path

import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import JobError
from streamfrom.spark.source.claims import ClaimShard


def shard_of(kind):
    return ClaimShard(Endpoint("127.0.0.1", 1, "u", "ks"), "-80", "t", {"id": kind})


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


def test_no_clock_but_the_servers_says_what_is_due_or_acknowledged():
    """A driver or executor whose clock is off changes nothing."""
    spark = Path(__file__).parents[3] / "spark"
    looks = {
        f"{path.name}: {node.attr}"
        for path in (*spark.glob("source/*.py"), *spark.glob("jobs/consume/*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in {"time", "time_ns", "now", "utcnow", "today"}
    }
    assert not looks


def test_what_is_due_and_how_long_it_is_kept_follow_the_servers_clock(monkeypatch):
    shard = shard_of("int")
    changed = []
    asked = "streamfrom.spark.source.claims.ask"
    monkeypatch.setattr(shard, "_session", nullcontext)
    monkeypatch.setattr(asked, lambda *given: [(b"86400000001",)])

    def change(sql, values):
        changed.append(values)
        return 1

    monkeypatch.setattr(shard, "_change", change)
    shard.ack({1: [5]})
    shard.renew({1: [5]}, 10.0)
    shard.put_back({3: [5]}, lambda epoch: epoch * 10.0)
    day_ns = 86_400_000_001_000
    assert changed == [[day_ns], [day_ns + 10**10, 1], [day_ns + 3 * 10**10, 3]]
