"""What analytics is asked for."""

from pathlib import Path

import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.analytics.config import (
    AnalyticsConfig,
    needed,
    resolved,
    span,
)
from streamfrom.spark.jobs.analytics.message_facts import Told
from streamfrom.spark.table_schema import Field


S = 10**9
HERE = Endpoint("db", 1, "u", "ks")
FIRST_LAYOUT = [
    Field(name, name, "bigint", "bigint")
    for name in ("time_scheduled", "id", "time_next", "epoch", "time_created", "time_acked")
]


def test_the_first_layouts_columns_are_found_unless_others_are_named():
    found = resolved(Told(), FIRST_LAYOUT, "t")
    assert (found.created, found.due, found.tenant) == ("time_created", "time_scheduled", None)
    assert resolved(Told(created="id"), FIRST_LAYOUT, "t").due is None
    assert (
        len(needed(found, [*FIRST_LAYOUT, Field("message", "message", "text", "string")])) == 6
    )


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(RequestError, match="t has no column 'made'; it has time_scheduled, id"):
        resolved(Told(created="made"), FIRST_LAYOUT, "t")


def test_the_window_is_the_last_day_as_far_as_there_are_acks():
    config, now = AnalyticsConfig(HERE, "t", Path("o")), 1_800_000_000 * S
    assert span(config, now, now - 3600 * S) == (now - 3600 * S, now)
    assert span(config, now, 5) == (now - 86_400 * S, now)
    assert span(config, now, now - 1) == (now - 60 * S, now)
    for low, high in ((5, 5), (6, 5), (5, now + 1)):
        with pytest.raises(RequestError, match=r"--from|--to"):
            span(AnalyticsConfig(HERE, "t", Path("o"), low, high), now, None)
