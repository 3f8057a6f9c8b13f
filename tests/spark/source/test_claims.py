"""Ids in JSON and back; claiming itself is `test_queue_db.py`."""

from decimal import Decimal

import pytest


@pytest.mark.parametrize(
    ("kind", "ident", "sent"),
    [
        ("varchar(9)", "it's", "it's"),
        ("binary(2)", "00ff", b"\x00\xff"),
        ("decimal(10,2)", "1.50", Decimal("1.50")),
    ],
)
def test_an_id_is_sent_as_what_it_is(kind, ident, sent):
    from spark.endpoint import Endpoint
    from spark.source.claims import Shard

    shard = Shard(Endpoint("127.0.0.1", 1, "u", "ks"), "-80", "t", {"id": kind})
    assert shard.where_ids([ident, ident]) == ("id IN (%s, %s)", (sent, sent))


def test_whole_numbers_are_written_by_us_which_is_faster_than_the_driver():
    from spark.endpoint import Endpoint
    from spark.source.claims import Shard

    shard = Shard(
        Endpoint("127.0.0.1", 1, "u", "ks"), "-80", "t", {"id": "bigint(20) unsigned"}
    )
    assert shard.where_ids([2**64 - 1, 7]) == ("id IN (18446744073709551615, 7)", ())
    with pytest.raises(ValueError, match="invalid literal"):
        shard.where_ids(["1) OR (1"])


def test_a_shard_that_cannot_be_reached_is_named():
    from spark.endpoint import Endpoint
    from spark.errors import JobError
    from spark.source.claims import Shard

    shard = Shard(Endpoint("127.0.0.1", 1, "u", "ks"), "-80", "t", {"id": "int"})
    with pytest.raises(JobError, match=r"127.0.0.1:1 cannot be reached"):
        shard.now_ns()
