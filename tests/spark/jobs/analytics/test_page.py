"""The page: its numbers, and that nobody's name is more than a name on it."""

import dataclasses
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from streamfrom.spark.jobs.analytics.page import Results, page


S = 10**9
LOW = 1_800_000_000 * S
HOSTILE = "<script>alert('x')</script>\"&"


class Reader(HTMLParser):
    """The tags, attributes and text of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.text.append(data)


def group(**more):
    ends = {"known": 90, "p50_ms": 120.0, "p90_ms": 900.0, "p99_ms": 4000.0}
    spread = {f"to_ack_{end}": value for end, value in ends.items()}
    counts = {
        "acked": 100,
        "retried": 10,
        "retries": 12,
        "retries_max": 2,
        "skewed": 10,
    }
    return counts | spread | more


def message(**more):
    times = {"next_ns": LOW, "created_ns": None, "overdue_ms": 61_000.0, "age_ms": None}
    names = {"id": HOSTILE, "shard": "-80", "tenant": HOSTILE, "state": "ready again"}
    return names | {"priority": 5, "sends": 9} | times | more


@pytest.fixture
def results():
    waits = [
        {"state": state, "messages": many, "overdue_max_ms": 61_000.0, "until_max_ms": 5000.0}
        | {"age_max_ms": None, "suspects": suspects}
        for state, many, suspects in (
            ("ready", 3, 0),
            ("ready again", 2, 1),
            ("scheduled", 4, 0),
        )
    ]
    return Results(
        table=f"ks.{HOSTILE}",
        low_ns=LOW,
        high_ns=LOW + 600 * S,
        bucket_ns=60 * S,
        made_ns=LOW + 601 * S,
        rows={
            "by_table": [group()],
            "by_window": [group(window_ns=LOW + 60 * S)],
            "by_window_shard": [group(window_ns=LOW + 60 * S, shard=HOSTILE)],
            "by_shard": [group(shard=HOSTILE)],
            "tenants": [group(tenant=HOSTILE), group(tenant=None)],
            "attempts": [{"sends": sends, "acked": 10} for sends in range(1, 11)],
            "written": [{"window_ns": LOW + 60 * S, "written": 60}],
            "waits": waits,
            "poison": [message()],
        },
        tenants_total=7,
        poison_sends=5,
        created=HOSTILE,
    )


def read(results, **rows):
    html = page(dataclasses.replace(results, rows={**results.rows, **rows}))
    reader = Reader()
    reader.feed(html)
    return html, reader


def test_its_figures_are_those_that_were_counted(results):
    html, reader = read(results)
    text = "|".join(reader.text)
    assert "Acknowledged|100|10/min" in text
    assert "Time to ack, median|120 ms|p99 4 s" in text
    assert "Sent more than once|10 %|12 retries" in text
    assert "Waiting now|9|5 of them ready" in text
    assert "Ready for longest|1 min 1 s|1 on the poison list" in text
    assert "the 2 busiest of 7" in text
    assert "8 and more" not in text
    assert "9 and more|20|20 %" in text
    assert "width:20.0%" in html
    assert '<th>id</th><th class="text">shard</th>' in html
    assert "2027-01-15 08:00:00 to 2027-01-15 08:10:00" in text


def test_a_window_shows_its_rates_on_each_other_and_its_durations_by_decades(results):
    _, reader = read(
        results,
        by_shard=[group(shard="-80"), group(shard="80-")],
        by_window_shard=[
            {"window_ns": LOW, "shard": "-80", "acked": 60},
            {"window_ns": LOW, "shard": "80-", "acked": 120},
        ],
        by_window=[
            {"window_ns": LOW + n * 60 * S}
            | {"to_ack_p50_ms": at, "to_ack_p90_ms": 10 * at, "to_ack_p99_ms": None}
            for n, at in enumerate((1.0, 10.0))
        ],
        written=[{"window_ns": LOW, "written": 90}],
    )
    columns = [value for name, value in reader.attributes if name == "title"]
    assert columns[0] == (
        "2027-01-15 08:00:00\nacknowledged on -80: 1/s\nacknowledged on 80-: 2/s\nwritten: 1.5/s"
    )
    assert "2027-01-15 08:01:00\np99: —\np90: 100 ms\np50: 10 ms" in columns
    heights = [
        float(value[4:-1]) for name, value in reader.attributes if value.startswith("--y:")
    ]
    assert heights[:3] == [33.33, 66.67, 50.0]
    # After the nine other windows, without a message, those of two percentiles in two windows.
    low, middle, again, high = heights[30:][1::2] + heights[30:][::2]
    assert (again, low < middle < high, 49 < middle < 51) == (middle, True, True)
    text = "|".join(reader.text)
    assert "3/s|1.5/s|0" in text
    assert "125 ms|10 ms|0.8 ms" in text


def test_no_value_becomes_markup_and_nothing_is_fetched(results):
    html, reader = read(results)
    assert "script" not in reader.tags
    assert "<script" not in html
    assert not {"src", "href", "onload", "onclick"} & {name for name, _ in reader.attributes}
    assert not any("http:" in value or "https:" in value for _, value in reader.attributes)
    assert "".join(reader.text).count(f"ks.{HOSTILE}") == 2  # as title, and as head
    assert "ks.<wbr>&lt;script" in html
    assert reader.text.count(HOSTILE) >= 4
    assert f"acknowledged on {HOSTILE}" in reader.text


def test_long_values_end_in_an_ellipsis(results):
    _, reader = read(results, poison=[message(id="x" * 500)])
    assert "x" * 60 + "…" in reader.text


def test_an_empty_queue_has_a_page_too(results):
    nothing = dict.fromkeys(group()) | {"acked": 0, "retried": 0, "retries": 0}
    nothing |= {"to_ack_known": 0, "skewed": 0}
    empty: dict[str, Any] = {name: [] for name in results.rows}
    _, reader = read(results, **empty | {"by_table": [nothing]})
    text = "|".join(reader.text)
    assert "No message was acknowledged in this time." in text
    assert text.count("No message was acknowledged in this time.") == 3
    assert "Nothing: no message is without an acknowledgement." in text
    assert "--created-column" not in text
    assert "Shards" not in text


def test_what_the_table_does_not_tell_is_not_drawn_as_nothing(results):
    unknown = group(to_ack_known=0)
    _, reader = read(results, by_table=[unknown], tenants=[])
    text = "|".join(reader.text)
    assert text.count("--created-column") == 1
    assert "Tenants" not in text
    assert "No message was acknowledged" not in text


def test_what_a_figure_is_derived_from_is_said(results):
    for created, told in (
        (None, "Not known: a row does not"),
        ("made", "time_acked - made, of"),
    ):
        _, reader = read(dataclasses.replace(results, created=created))
        assert f"|Time to acknowledge|{told}" in "|".join(reader.text)


def test_no_figure_is_doubted_when_all_is_well(results):
    html, _ = read(results, by_table=[group(skewed=0, to_ack_known=100)])
    assert 'role="note"' not in html


@pytest.mark.parametrize(
    ("rows", "doubt"),
    [
        ({"skewed": 3}, "3 messages were acknowledged before"),
        ({"to_ack_known": 84}, f"6 messages were acknowledged without a time in {HOSTILE}"),
        (
            {"to_ack_p50_ms": 1e12, "to_ack_p99_ms": 1e12},
            f"Half of all messages took years: {HOSTILE} hardly",
        ),
        ({"to_ack_p99_ms": 1e12}, "One message in a hundred took years"),
    ],
)
def test_each_doubt_is_a_sentence(results, rows, doubt):
    html, reader = read(results, by_table=[group(**rows)])
    assert 'role="note"' in html
    assert doubt in "".join(reader.text)


def test_sends_stand_out_where_they_are_what_is_wrong(results):
    _, reader = read(results)
    assert reader.attributes.count(("class", "hot")) == len(results.rows["poison"])


def test_many_shards_share_one_colour(results):
    _, reader = read(results, by_shard=[group(shard=f"s{n}") for n in range(20)])
    assert "acknowledged on" not in "|".join(reader.text)


def test_its_style_fetches_nothing_and_has_the_same_colours_by_day_and_by_night(results):
    html, _ = read(results)
    style = html[html.index("<style>") : html.index("</style>")]
    assert not re.search(r"url\(|@import|@font-face|//", style)
    day, night = (
        set(re.findall(r"(--[a-z0-9-]+):", part))
        for part in re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    )
    assert day == night
