"""Charts as the paths they are."""

from streamfrom.spark.jobs.analytics.charts import PlotArea, Series, bars, duration_axis, lines


S = 10**9
FRAME = PlotArea(0, 40 * S, range(0, 40 * S, 10 * S), 10 * S)


def test_bars_stand_on_each_other_and_say_their_values():
    chart = bars(FRAME, [Series("a", "s0", [1, 2, None, 0]), Series("b", "s1", [1, 0, 4, 0])])
    (_, low), (_, high) = chart.paths
    assert low == "M0.00 100.00V75.00H24.85V100.00ZM25.00 100.00V50.00H49.85V100.00Z"
    assert high == "M0.00 75.00V50.00H24.85V75.00ZM50.00 100.00V0.00H74.85V100.00Z"
    assert [*chart.hovers][:1] == [(0, 25, "1970-01-01 00:00:00\na: 1/s\nb: 1/s")]
    assert chart.keys == [("a", "fill s0"), ("b", "fill s1")]


def test_a_line_is_level_in_a_window_and_breaks_where_nothing_is_known():
    series = [
        Series("p50", "p50", [1.0, 2.0, None, 4.0]),
        Series("p99", "p99", [2.0] * 3 + [None]),
    ]
    paths = dict(lines(FRAME, series, "x").paths)
    assert paths["line p50"] == "M0.00 75.00H25.00L25.00 50.00H50.00M75.00 0.00H100.00"
    # Between the first and the last series, where both are known and apart.
    assert paths["band"] == "M0.00 75.00V50.00H25.00V75.00Z"


def test_values_far_apart_have_a_logarithmic_axis():
    near, far = (
        duration_axis([Series("", "", [1.0, 9.0])]),
        duration_axis([Series("", "", [1.0, 10_000.0, None])]),
    )
    assert near.ticks[:2] == [0, 2.5]
    assert far.ticks == [1, 10, 100, 1000, 10_000]
    assert [far.y(value) for value in (0, 1, 100, 10_000)] == [100, 100, 50, 0]


def test_nothing_is_drawn_of_nothing():
    chart = bars(FRAME, [Series("a", "s0", [None] * 4)])
    assert (chart.paths, chart.hovers) == ([("bar s0", "")], [])
