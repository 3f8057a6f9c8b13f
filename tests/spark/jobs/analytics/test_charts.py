"""Charts as the paths they are."""

from streamfrom.spark.jobs.analytics.charts import PlotArea, Series, bars, lines


S = 10**9
FRAME = PlotArea(0, 40 * S, range(0, 40 * S, 10 * S), 10 * S)


def test_bars_stand_on_each_other_and_say_their_values():
    chart = bars(FRAME, [Series("a", "s0", [1, 2, None, 0]), Series("b", "s1", [1, 0, 4, 0])])
    (_, low), (_, high) = chart.paths
    assert low == "M0.00 100.00V75.00H24.85V100.00ZM25.00 100.00V50.00H49.85V100.00Z"
    assert high == "M0.00 75.00V50.00H24.85V75.00ZM50.00 100.00V0.00H74.85V100.00Z"
    assert [*chart.hovers][:1] == [(0, 25, "1970-01-01 00:00:00\na: 1/s\nb: 1/s")]
    assert chart.keys == [("a", "fill s0"), ("b", "fill s1")]


def test_a_line_is_level_in_a_window_breaks_where_nothing_is_known_and_rises_by_decades():
    series = [
        Series("p50", "p50", [1.0, 10.0, None, 100.0]),
        Series("p99", "p99", [10.0] * 3 + [None]),
    ]
    chart = lines(FRAME, series, "x")
    paths = dict(chart.paths)
    assert [text for _, text in chart.values] == ["1 ms", "10 ms", "100 ms"]
    assert paths["line p50"] == "M0.00 100.00H25.00L25.00 50.00H50.00M75.00 0.00H100.00"
    # Between the first and the last series, where both are known and apart.
    assert paths["band"] == "M0.00 100.00V50.00H25.00V100.00Z"


def test_nothing_is_drawn_of_nothing():
    chart = bars(FRAME, [Series("a", "s0", [None] * 4)])
    assert (chart.paths, chart.hovers) == ([("bar s0", "")], [])
