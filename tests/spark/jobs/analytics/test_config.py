"""What analytics is asked for."""

import argparse
from pathlib import Path

import pytest

from streamfrom.spark.endpoint import Column, Endpoint
from streamfrom.spark.errors import RequestError


S = 10**9
HERE = Endpoint("db", 1, "u", "ks")
FIRST_LAYOUT = [
    Column(name, "bigint")
    for name in ("time_scheduled", "id", "time_next", "epoch", "time_created", "time_acked")
]


def asked(*argv):
    from streamfrom.spark.jobs.analytics.config import add_options, configured

    parser = argparse.ArgumentParser()
    add_options(parser)
    options = parser.parse_args(["--out", "o", *argv], argparse.Namespace(table="t"))
    return configured(options, HERE)


def test_options_become_a_configuration():
    config = asked("--created-column", "made", "--time-unit", "ms", "--bucket", "60")
    assert (config.told.created, config.told.unit_ns, config.bucket_ns) == (
        "made",
        10**6,
        60 * S,
    )
    assert (config.low_ns, config.high_ns, config.out) == (None, None, Path("o"))
    for wrong in (("--bucket", "0"), ("--poison-sends", "0")):
        with pytest.raises(RequestError, match=wrong[0]):
            asked(*wrong)


def test_the_first_layouts_columns_are_found_unless_others_are_named():
    from streamfrom.spark.jobs.analytics.config import needed, resolved
    from streamfrom.spark.jobs.analytics.message_facts import Told

    found = resolved(Told(), FIRST_LAYOUT, "t")
    assert (found.created, found.due, found.tenant) == ("time_created", "time_scheduled", None)
    assert resolved(Told(created="id"), FIRST_LAYOUT, "t").due is None
    assert len(needed(found, [*FIRST_LAYOUT, Column("message", "string")])) == 6


def test_a_column_that_is_not_there_is_named():
    from streamfrom.spark.jobs.analytics.config import resolved
    from streamfrom.spark.jobs.analytics.message_facts import Told

    with pytest.raises(RequestError, match="t has no column 'made'; it has time_scheduled, id"):
        resolved(Told(created="made"), FIRST_LAYOUT, "t")


def test_the_window_is_the_last_day_as_far_as_there_are_acks():
    from streamfrom.spark.jobs.analytics.config import AnalyticsConfig, span

    config, now = AnalyticsConfig(HERE, "t", Path("o")), 1_800_000_000 * S
    assert span(config, now, now - 3600 * S) == (now - 3600 * S, now)
    assert span(config, now, 5) == (now - 86_400 * S, now)
    assert span(config, now, now - 1) == (now - 60 * S, now)
    for low, high in ((5, 5), (6, 5), (5, now + 1)):
        with pytest.raises(RequestError, match=r"--from|--to"):
            span(AnalyticsConfig(HERE, "t", Path("o"), low, high), now, None)
