"""Charts as the paths they are."""

from streamfrom.spark.jobs.analytics.charts import PlotArea, Series, bars, duration_axis, lines


S = 10**9
FRAME = PlotArea(0, 40 * S, range(0, 40 * S, 10 * S), 10 * S)


def test_bars_stand_on_each_other_and_say_their_values():
    chart = bars(FRAME, [Series("a", "s0", [1, 2, None, 0]), Series("b", "s1", [1, 0, 4, 0])])
    assert [(style, path.count("M")) for style, path in chart.paths] == [
        ("bar s0", 2),
        ("bar s1", 2),
    ]
    assert chart.paths[0][1].startswith("M0.00 100.00V")
    assert [*chart.hovers][:1] == [(0, 25, "1970-01-01 00:00:00\na: 1/s\nb: 1/s")]
    assert chart.keys == [("a", "fill s0"), ("b", "fill s1")]


def test_a_line_breaks_where_nothing_is_known_and_one_point_is_a_dot():
    paths = dict(lines(FRAME, [Series("p50", "p50", [1.0, 2.0, None, 3.0])], "x").paths)
    assert paths["line p50"].count("M") == paths["line point p50"].count("M") == 1
    assert paths["line point p50"].endswith("h0.01")


def test_values_far_apart_have_a_logarithmic_axis():
    near, far = (
        duration_axis([Series("", "", [1.0, 9.0])]),
        duration_axis([Series("", "", [1.0, 10_000.0, None])]),
    )
    assert [text for _, text in near.ticks][:2] == ["0", "2.5 ms"]
    assert [text for _, text in far.ticks] == ["1 ms", "10 ms", "100 ms", "1 s", "10 s"]
    assert (far.height_of(0), far.height_of(1), far.height_of(100)) == (0, 0, 0.5)


def test_nothing_is_drawn_of_nothing():
    chart = bars(FRAME, [Series("a", "s0", [None] * 4)])
    assert (chart.paths, chart.hovers) == ([("bar s0", "")], [])
