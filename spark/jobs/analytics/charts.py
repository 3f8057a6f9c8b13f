"""The report's charts: numbers in, places and paths out, which `report.html` draws as SVG: pure."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from streamfrom.spark.jobs.analytics import number_format as say


# The side of the square that is drawn in, which the page stretches to the room there is.
_SIDE: Final = 100
# Beyond this ratio a linear axis shows nothing of the smaller values.
_LINEAR_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class Series:
    """One line or one layer of bars: a value for each window, None where there is none."""

    name: str
    style: str
    values: "Sequence[float | None]"


@dataclass(frozen=True, slots=True)
class Axis:
    """Where values are on the chart, and what is written there."""

    ticks: "Sequence[tuple[float, str]]"
    height_of: "Callable[[float], float]"
    """Maps a value to 0 (bottom) … 1 (top)."""

    def y(self, value: float) -> float:
        """Return where a value is."""
        return _SIDE * (1 - self.height_of(value))


@dataclass(frozen=True, slots=True)
class PlotArea:
    """The time that a chart spans, the windows in it, and for how many times there is room at most."""

    low_ns: int
    high_ns: int
    starts_ns: "Sequence[int]"
    bucket_ns: int
    ticks_max: int = 5

    def x(self, at_ns: int) -> float:
        """Return where a moment is."""
        inside = min(max(at_ns, self.low_ns), self.high_ns) - self.low_ns
        return inside / (self.high_ns - self.low_ns) * _SIDE

    def edges(self, start_ns: int) -> tuple[float, float]:
        """Return where a window begins and ends."""
        return self.x(start_ns), self.x(start_ns + self.bucket_ns)


def linear(
    values: "Sequence[float]", told: "Callable[[float], str]", steps: "Sequence[float]"
) -> Axis:
    """Return an axis from zero to above the highest of *values*."""
    ticks = say.ticks(max(values, default=0.0), steps)
    return Axis([(tick, told(tick)) for tick in ticks], lambda value: value / ticks[-1])


def logarithmic(values: "Sequence[float]", told: "Callable[[float], str]") -> Axis:
    """Return an axis on which equal ratios are equally far apart, around *values*; what is zero lies on its bottom."""
    ticks = say.decades(values)

    def height_of(value: float) -> float:
        if value <= ticks[0]:
            return 0.0
        return math.log10(value / ticks[0]) / math.log10(ticks[-1] / ticks[0])

    return Axis([(tick, told(tick)) for tick in ticks], height_of)


def duration_axis(series: "Sequence[Series]") -> Axis:
    """Return a linear axis, or a logarithmic one where the values lie far apart."""
    values = [value for line in series for value in line.values if value]
    if values and max(values) > _LINEAR_MAX * min(values):
        return logarithmic(values, say.duration)
    return linear(values, say.duration, say.DURATIONS_MS)


@dataclass(frozen=True, slots=True)
class Chart:
    """What a page draws, by places on a square.

    values, times: the places of the lines for values and of the times, and what is written there.
    paths: the style and the data of each SVG path.
    hovers: left, width and text of what shows a window's values under the pointer.
    keys: the names of the series and their styles, for a legend.
    """

    about: str
    values: "Sequence[tuple[float, str]]"
    times: "Sequence[tuple[float, str]]"
    paths: "Sequence[tuple[str, str]]"
    hovers: "Sequence[tuple[float, float, str]]"
    keys: "Sequence[tuple[str, str]]"


def bars(frame: PlotArea, layers: "Sequence[Series]", lines: "Sequence[Series]" = ()) -> Chart:
    """Return *layers* stacked as bars, with *lines* over them; all are rates a second."""
    totals = [sum(values) for values in zip(*(_filled(layer) for layer in layers), strict=True)]
    highest = [*totals, *(value for line in lines for value in _filled(line))]
    axis = linear(highest, say.rate, say.VALUES)
    paths = []
    floors = [0.0] * len(frame.starts_ns)
    for layer in layers:
        path = []
        for place, value in enumerate(_filled(layer)):
            if not value:
                continue
            left, right = frame.edges(frame.starts_ns[place])
            bottom = axis.y(floors[place])
            floors[place] += value
            top = axis.y(floors[place])
            gap = min(0.15, (right - left) * 0.15)
            path.append(f"M{left:.2f} {bottom:.2f}V{top:.2f}H{right - gap:.2f}V{bottom:.2f}Z")
        paths.append((f"bar {layer.style}", "".join(path)))
    paths += [path for line in lines for path in _line(frame, axis, line)]
    keys = [(one.name, f"fill {one.style}") for one in layers]
    keys += [(one.name, f"fill stroke {one.style}") for one in lines]
    return _chart(frame, axis, "Messages over time", paths, [*layers, *lines], say.rate, keys)


def lines(frame: PlotArea, series: "Sequence[Series]", about: str) -> Chart:
    """Return *series* of milliseconds as lines, the room between first and last shaded."""
    axis = duration_axis(series)
    paths = [("band", _band(frame, axis, series[0], series[-1]))]
    paths += [path for line in series for path in _line(frame, axis, line)]
    keys = [(one.name, f"fill stroke {one.style}") for one in reversed(series)]
    return _chart(frame, axis, about, paths, series, say.duration, keys)


def _filled(series: Series) -> list[float]:
    return [value or 0.0 for value in series.values]


def _chart(
    frame: PlotArea,
    axis: Axis,
    about: str,
    paths: "Sequence[tuple[str, str]]",
    series: "Sequence[Series]",
    text_of: "Callable[[float | None], str]",
    keys: "Sequence[tuple[str, str]]",
) -> Chart:
    values = [(round(axis.y(at), 2), text) for at, text in axis.ticks]
    ticks = say.time_ticks(frame.low_ns, frame.high_ns, frame.ticks_max)
    times = [(round(frame.x(at_ns), 2), text) for at_ns, text in ticks]
    hovers = []
    for place, start_ns in enumerate(frame.starts_ns):
        left, right = frame.edges(start_ns)
        told = [(one.name, one.values[place]) for one in series]
        if any(value is not None for _, value in told):
            lines = [
                say.moment(start_ns),
                *(f"{name}: {text_of(value)}" for name, value in told),
            ]
            width = max(right - left, 0.1)
            hovers.append((round(left, 2), round(width, 2), "\n".join(lines)))
    return Chart(about, values, times, paths, hovers, keys)


def _points(frame: PlotArea, axis: Axis, series: Series) -> "list[list[tuple[float, float]]]":
    """Return the runs of windows that have a value."""
    runs: list[list[tuple[float, float]]] = [[]]
    for start_ns, value in zip(frame.starts_ns, series.values, strict=True):
        if value is None:
            runs.append([])
            continue
        left, right = frame.edges(start_ns)
        runs[-1].append(((left + right) / 2, axis.y(value)))
    return [run for run in runs if run]


def _line(frame: PlotArea, axis: Axis, series: Series) -> list[tuple[str, str]]:
    drawn, alone = [], []
    for run in _points(frame, axis, series):
        if len(run) == 1:
            # A line of one point shows as a dot, which wants to be thicker than a line to be seen.
            alone.append(f"M{run[0][0]:.2f} {run[0][1]:.2f}h0.01")
        else:
            drawn.append("M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in run))
    return [
        (f"{name} {series.style}", "".join(path))
        for name, path in (("line", drawn), ("line point", alone))
        if path
    ]


def _band(frame: PlotArea, axis: Axis, lower: Series, upper: Series) -> str:
    drawn = []
    for low, high in zip(
        _points(frame, axis, lower), _points(frame, axis, upper), strict=False
    ):
        around = [*high, *reversed(low)]
        drawn.append("M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in around) + "Z")
    return "".join(drawn)
