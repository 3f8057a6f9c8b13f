"""Charts as the text they are."""

from xml.etree import ElementTree

from streamfrom.spark.jobs.analytics.charts import (
    PlotArea,
    Series,
    bars,
    duration_axis,
    lines,
    shares,
)


S = 10**9
FRAME = PlotArea(0, 40 * S, range(0, 40 * S, 10 * S), 10 * S)


def parsed(svg):
    return ElementTree.fromstring(svg)


def test_bars_stand_on_each_other_and_say_their_values():
    svg = parsed(
        bars(FRAME, [Series("a", "s0", [1, 2, None, 0]), Series("b", "s1", [1, 0, 4, 0])])
    )
    drawn = [path.get("d") for path in svg.iter("path") if path.get("class").startswith("bar")]
    assert [path.count("M") for path in drawn] == [2, 2]
    told = [title.text for title in svg.iter("title")]
    assert told[0] == "1970-01-01 00:00:00\na: 1/s\nb: 1/s"


def test_a_line_breaks_where_nothing_is_known_and_one_point_is_a_dot():
    svg = parsed(lines(FRAME, [Series("p50", "p50", [1.0, 2.0, None, 3.0])], "x"))
    paths = {path.get("class"): path.get("d") for path in svg.iter("path")}
    assert paths["line p50"].count("M") == paths["line point p50"].count("M") == 1
    assert paths["line point p50"].endswith("h0.1")


def test_values_far_apart_have_a_logarithmic_axis():
    near, far = (
        duration_axis([Series("", "", [1.0, 9.0])]),
        duration_axis([Series("", "", [1.0, 10_000.0, None])]),
    )
    assert [text for _, text in near.ticks][:2] == ["0", "2.5 ms"]
    assert [text for _, text in far.ticks] == ["1 ms", "10 ms", "100 ms", "1 s", "10 s"]
    assert (far.height_of(0), far.height_of(1), far.height_of(100)) == (0, 0, 0.5)


def test_nothing_is_drawn_of_nothing():
    parsed(bars(FRAME, [Series("a", "s0", [None] * 4)]))
    parsed(shares([("a", "s0", 0.0)], "nothing"))
