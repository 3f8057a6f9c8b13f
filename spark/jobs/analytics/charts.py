"""The report's charts: numbers in, places and paths out, which `report.html` draws as SVG: pure."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from streamfrom.spark.jobs.analytics import number_format as say


if TYPE_CHECKING:
    from numpy.typing import NDArray


# The side of the square that is drawn in, which the page stretches to the room there is.
_SIDE: Final = 100
# For how many times there is room at most.
_TICKS_MAX: Final = 11


@dataclass(frozen=True, slots=True)
class Series:
    """One line or one layer of bars: a value for each window, None where there is none."""

    name: str
    style: str
    values: "Sequence[float | None]"

    @property
    def known(self) -> "NDArray[np.float64]":
        """The values, none of them as NaN."""
        return np.array(self.values, np.float64)


@dataclass(frozen=True, slots=True)
class Axis:
    """What values a chart names: linear from zero on, or logarithmic if its first tick lies above."""

    ticks: "Sequence[float]"
    text_of: "Callable[[float | None], str]"

    def y(self, value: float) -> float:
        """Return where a value is; on a logarithmic axis smaller ones lie on its bottom."""
        low, high = self.ticks[0], self.ticks[-1]
        if low:
            return _SIDE * (1 - math.log(max(value, low) / low) / math.log(high / low))
        return _SIDE * (1 - value / high)


@dataclass(frozen=True, slots=True)
class PlotArea:
    """The time that a chart spans, and the windows in it."""

    low_ns: int
    high_ns: int
    starts_ns: "Sequence[int]"
    bucket_ns: int

    def x(self, at_ns: int) -> float:
        """Return where a moment is."""
        inside = min(max(at_ns, self.low_ns), self.high_ns) - self.low_ns
        return inside / (self.high_ns - self.low_ns) * _SIDE

    @property
    def edges(self) -> list[tuple[float, float]]:
        """Where each window begins and ends."""
        return [(self.x(at_ns), self.x(at_ns + self.bucket_ns)) for at_ns in self.starts_ns]


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
    heights = np.nan_to_num([layer.known for layer in layers])
    tops = heights.cumsum(axis=0)
    highest = float(np.nanmax([*tops, *(line.known for line in lines)]))
    axis = Axis(say.ticks(highest), say.rate)
    paths = [
        (f"bar {layer.style}", _blocks(frame, axis, top - height, top, gap=0.15))
        for layer, height, top in zip(layers, heights, tops, strict=True)
    ]
    paths += [(f"line {line.style}", _steps(frame, axis, line)) for line in lines]
    keys = [(one.name, f"fill {one.style}") for one in layers]
    keys += [(one.name, f"fill stroke {one.style}") for one in lines]
    return _chart(frame, axis, "Messages over time", paths, [*layers, *lines], keys)


def lines(frame: PlotArea, series: "Sequence[Series]", about: str) -> Chart:
    """Return *series* of milliseconds as lines, the room between first and last shaded."""
    values = [value for line in series for value in line.values if value]
    axis = Axis(say.decades(values), say.duration)
    paths = [("band", _blocks(frame, axis, series[0].known, series[-1].known))]
    paths += [(f"line {line.style}", _steps(frame, axis, line)) for line in series]
    keys = [(one.name, f"fill stroke {one.style}") for one in reversed(series)]
    return _chart(frame, axis, about, paths, series, keys)


def _chart(
    frame: PlotArea,
    axis: Axis,
    about: str,
    paths: "Sequence[tuple[str, str]]",
    series: "Sequence[Series]",
    keys: "Sequence[tuple[str, str]]",
) -> Chart:
    values = [(round(axis.y(at), 2), axis.text_of(at)) for at in axis.ticks]
    ticks = say.time_ticks(frame.low_ns, frame.high_ns, _TICKS_MAX)
    times = [(round(frame.x(at_ns), 2), text) for at_ns, text in ticks]
    hovers = []
    for place, (left, right) in enumerate(frame.edges):
        told = [(one.name, one.values[place]) for one in series]
        if any(value is not None for _, value in told):
            text = [f"{name}: {axis.text_of(value)}" for name, value in told]
            hover = "\n".join([say.moment(frame.starts_ns[place]), *text])
            hovers.append((round(left, 2), round(max(right - left, 0.1), 2), hover))
    return Chart(about, values, times, paths, hovers, keys)


def _blocks(frame: PlotArea, axis: Axis, lows: Any, highs: Any, gap: float = 0.0) -> str:
    """Return a block for each window that has a value, from the low to the high one; *gap*: what stays free, at most 15 %."""
    return "".join(
        f"M{left:.2f} {axis.y(low):.2f}V{axis.y(high):.2f}"
        f"H{right - min(gap, (right - left) * 0.15):.2f}V{axis.y(low):.2f}Z"
        for (left, right), low, high in zip(frame.edges, lows, highs, strict=True)
        if high > low
    )


def _steps(frame: PlotArea, axis: Axis, line: Series) -> str:
    """Return a line that is level in each window, and breaks where nothing is known."""
    drawn = []
    joins = "M"
    for (left, right), value in zip(frame.edges, line.values, strict=True):
        if value is not None:
            drawn.append(f"{joins}{left:.2f} {axis.y(value):.2f}H{right:.2f}")
        joins = "M" if value is None else "L"
    return "".join(drawn)
