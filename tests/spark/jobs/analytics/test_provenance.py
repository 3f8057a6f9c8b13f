"""What the report says about its own figures."""

import pytest

from streamfrom.spark.jobs.analytics.message_facts import Told
from streamfrom.spark.jobs.analytics.provenance import warnings


S = 10**9
FINE = {
    "acked": 10, "skewed": 0, "to_ack_known": 10, "to_ack_p50_ms": 5.0, "to_ack_p99_ms": 9.0,
}  # fmt: skip


def said(total=FINE, waits=(), clocks=None, later=0, created="made"):
    return warnings(total, waits, clocks or {"-80": 0}, 0, later, Told(created=created))


def test_it_is_silent_when_all_is_well():
    assert said() == []


@pytest.mark.parametrize(
    ("doubt", "told"),
    [
        ({"total": FINE | {"skewed": 3, "to_ack_known": 7}}, "3 messages were acknowledged or"),
        ({"waits": [{"skewed": 2}]}, "2 messages were written in the future"),
        ({"later": 1}, "1 message was acknowledged in the future"),
        ({"clocks": {"-80": -90 * S}}, "shard -80 is 1 min 30 s behind this machine's"),
        (
            {"total": FINE | {"to_ack_known": 4}},
            "6 messages were acknowledged without a time in made",
        ),
        (
            {"total": FINE | {"to_ack_p50_ms": 1e12}},
            "Half of all messages took years: made hardly",
        ),
        ({"total": FINE | {"to_ack_p99_ms": 1e12}}, "One message in a hundred took years"),
    ],
)
def test_each_doubt_is_a_sentence(doubt, told):
    (sentence,) = said(**doubt)
    assert told in sentence
