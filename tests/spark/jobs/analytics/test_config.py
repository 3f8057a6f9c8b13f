"""What analytics is asked for."""

import dataclasses
from pathlib import Path

import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.analytics.config import AnalyticsConfig
from streamfrom.spark.table_schema import Field


S = 10**9
HERE = Endpoint("db", 1, "u", "ks")
FIRST_LAYOUT = [
    Field(name, name, "bigint", "bigint")
    for name in ("time_scheduled", "id", "time_next", "epoch", "time_created", "time_acked")
]


CONFIG = AnalyticsConfig(HERE, "t", Path("o"))


def test_the_first_layouts_columns_are_found_unless_others_are_named():
    found = CONFIG.resolved(FIRST_LAYOUT)
    assert (found.created, found.tenant) == ("time_created", None)
    named = dataclasses.replace(CONFIG, created="id", tenant="message")
    table = [*FIRST_LAYOUT, Field("message", "message", "text", "string")]
    assert named.resolved(table) == named
    assert [field.name for field in found.needed(table)] == [
        "id", "time_next", "epoch", "time_created", "time_acked",
    ]  # fmt: skip


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(RequestError, match="t has no column 'made'; it has time_scheduled, id"):
        dataclasses.replace(CONFIG, created="made").resolved(FIRST_LAYOUT)


def test_the_window_is_the_last_day_as_far_as_there_are_acks():
    now = 1_800_000_000 * S
    assert CONFIG.span(now, now - 3600 * S) == (now - 3600 * S, now)
    assert CONFIG.span(now, 5) == (now - 86_400 * S, now)
    assert CONFIG.span(now, now - 1) == (now - 60 * S, now)
    for low, high in ((5, 5), (6, 5), (5, now + 1)):
        with pytest.raises(RequestError, match=r"--from|--to"):
            dataclasses.replace(CONFIG, low_ns=low, high_ns=high).span(now, None)
