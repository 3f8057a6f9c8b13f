"""The report's charts: numbers in, an SVG element out, its colours left to the page's style.

Nothing here is measured or fetched: a chart is text that any browser draws without a script. Every
name that came from a table is escaped.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from streamfrom.spark.jobs.analytics import number_format as say


# The side of the square that is drawn in, which the page stretches to the room there is.
_SIDE: Final = 1000
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


def bars(frame: PlotArea, layers: "Sequence[Series]", lines: "Sequence[Series]" = ()) -> str:
    """Return *layers* stacked as bars, with *lines* over them; all are rates a second."""
    totals = [sum(values) for values in zip(*(_filled(layer) for layer in layers), strict=True)]
    highest = [*totals, *(value for line in lines for value in _filled(line))]
    axis = linear(highest, say.rate, say.VALUES)
    parts = []
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
            gap = min(1.5, (right - left) * 0.15)
            path.append(f"M{left:.1f} {bottom:.1f}V{top:.1f}H{right - gap:.1f}V{bottom:.1f}Z")
        parts.append(f'<path class="bar {escape(layer.style)}" d="{"".join(path)}"/>')
    parts += [_line(frame, axis, line) for line in lines]
    parts.append(_hover(frame, [*layers, *lines], say.rate))
    return _plot(frame, axis, "".join(parts), "Messages over time")


def lines(frame: PlotArea, series: "Sequence[Series]", about: str) -> str:
    """Return *series* of milliseconds as lines, the room between first and last shaded."""
    axis = duration_axis(series)
    band = _band(frame, axis, series[0], series[-1])
    drawn = "".join(_line(frame, axis, line) for line in series)
    return _plot(frame, axis, band + drawn + _hover(frame, series, say.duration), about)


def shares(parts: "Sequence[tuple[str, str, float]]", about: str) -> str:
    """Return (name, style, value) side by side as one bar, each as wide as its share."""
    total = sum(value for _, _, value in parts) or 1
    at, drawn = 0.0, []
    for name, style, value in parts:
        width = value / total * 1000
        if value:
            told = f"{name}: {say.count(value)} ({say.share(value, total)})"
            drawn.append(
                f'<rect class="bar {escape(style)}" x="{at:.2f}" y="0"'
                f' width="{max(width - 2, 1.5):.2f}" height="20"><title>{escape(told)}</title></rect>'
            )
        at += width
    return (
        '<svg class="shares" viewBox="0 0 1000 20" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape(about)}">{"".join(drawn)}</svg>'
    )


def _filled(series: Series) -> list[float]:
    return [value or 0.0 for value in series.values]


def _plot(frame: PlotArea, axis: Axis, inside: str, about: str) -> str:
    """Return a chart with its axes: a drawing that is stretched, and texts that are not."""
    grid = "".join(
        f'<path class="grid" d="M0 {axis.y(at):.1f}h{_SIDE}"/>' for at, _ in axis.ticks
    )
    values = "".join(
        f'<span style="top:{axis.y(at) / _SIDE:.2%}">{text}</span>' for at, text in axis.ticks
    )
    times = "".join(
        f'<span style="left:{frame.x(at_ns) / _SIDE:.2%}">{text}</span>'
        for at_ns, text in say.time_ticks(frame.low_ns, frame.high_ns, frame.ticks_max)
    )
    return (
        f'<div class="plot"><svg viewBox="0 0 {_SIDE} {_SIDE}" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape(about)}">{grid}{inside}</svg>'
        f'<div class="values">{values}</div><div class="times">{times}</div></div>'
    )


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


def _line(frame: PlotArea, axis: Axis, series: Series) -> str:
    drawn, alone = [], []
    for run in _points(frame, axis, series):
        if len(run) == 1:
            # A line of one point shows as a dot, which wants to be thicker than a line to be seen.
            alone.append(f"M{run[0][0]:.1f} {run[0][1]:.1f}h0.1")
        else:
            drawn.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in run))
    style = escape(series.style)
    return "".join(
        f'<path class="{name} {style}" d="{"".join(path)}"/>'
        for name, path in (("line", drawn), ("line point", alone))
        if path
    )


def _band(frame: PlotArea, axis: Axis, lower: Series, upper: Series) -> str:
    drawn = []
    for low, high in zip(
        _points(frame, axis, lower), _points(frame, axis, upper), strict=False
    ):
        around = [*high, *reversed(low)]
        drawn.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in around) + "Z")
    return f'<path class="band" d="{"".join(drawn)}"/>'


def _hover(
    frame: PlotArea, series: "Sequence[Series]", text_of: "Callable[[float | None], str]"
) -> str:
    """Return what shows a window's values under the pointer."""
    parts = []
    for place, start_ns in enumerate(frame.starts_ns):
        left, right = frame.edges(start_ns)
        values = [(one.name, one.values[place]) for one in series]
        if all(value is None for _, value in values):
            continue
        told = [say.moment(start_ns), *(f"{name}: {text_of(value)}" for name, value in values)]
        parts.append(
            f'<rect class="hover" x="{left:.1f}" y="0" width="{max(right - left, 1):.1f}"'
            f' height="{_SIDE}"><title>{escape(chr(10).join(told))}</title></rect>'
        )
    return "".join(parts)
