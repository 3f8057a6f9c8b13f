"""Figures, goals, and the one table that shows them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Target:
    """The design's goal for one figure: "≥" or "≤" a limit.

    of_ratio: the limit applies to the ratio, ours to theirs; otherwise to our figure.
    """

    goal: str
    limit: float
    of_ratio: bool = True

    def is_met(self, value: float) -> bool:
        """Return whether *value* meets the goal."""
        return value >= self.limit if self.goal == "≥" else value <= self.limit

    def text(self, unit: str) -> str:
        """Return the goal as text for the table."""
        if not self.of_ratio:
            return f"{self.goal} {number(self.limit)} {unit}"
        if self.goal == "≤" and self.limit < 1:
            return f"{self.goal} 1/{1 / self.limit:.0f}"
        return f"{self.goal} {number(self.limit)} x"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    ours, theirs: values of the same unit, one per run; theirs is None if the goal is absolute.
    against: the name of the opponent.
    """

    name: str
    unit: str
    ours: Sequence[float]
    against: str = ""
    theirs: Sequence[float] | None = None
    target: Target | None = None

    @property
    def ratios(self) -> Sequence[float] | None:
        """Ours to theirs, pair by pair if there are as many runs of each, else median to median."""
        if self.theirs is None:
            return None
        ours, theirs = self.ours, self.theirs
        if len(ours) != len(theirs):
            ours, theirs = (median(ours),), (median(theirs),)
        # Avoid a division by zero: a side may have no query or take less than a measurable time.
        return [a / max(b, 1e-9) for a, b in zip(ours, theirs, strict=True)]

    @property
    def is_met(self) -> bool | None:
        """Whether the median meets the goal, or None if there is no goal."""
        if self.target is None:
            return None
        values = self.ratios if self.target.of_ratio else self.ours
        assert values is not None
        return self.target.is_met(median(values))

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the line."""
        return (
            self.name,
            f"{number(median(self.ours))} {self.unit}",
            f"{number(median(self.theirs))} {self.unit}" if self.theirs else "",
            self.against,
            _ratio_text(self.ratios) if self.ratios else "",
            self.target.text(self.unit) if self.target else "",
            {None: "", True: "yes", False: "NO"}[self.is_met],
        )


def figure(
    name: str,
    unit: str,
    ours: Iterable[float],
    against: str = "",
    theirs: Iterable[float] | None = None,
    target: Target | None = None,
) -> Figure:
    """Return a figure of both sides' values, one per run."""
    their_values = None if theirs is None else list(theirs)
    return Figure(name, unit, list(ours), against, their_values, target)


def percentile_figures(
    name: str,
    ours: Sequence[Sequence[float]],
    against: str,
    theirs: Sequence[Sequence[float]],
    *goals: tuple[float, Target | None],
) -> list[Figure]:
    """Return a figure for each percentile of *goals*; a run is a sorted list of milliseconds."""
    return [
        figure(
            f"{name}, p{percent:g}",
            "ms",
            (percentile(run, percent) for run in ours),
            against,
            (percentile(run, percent) for run in theirs),
            target,
        )
        for percent, target in goals
    ]


# Goals for the ratio, ours to theirs, and for our figure.
ratio_at_least = partial(Target, "≥")
ratio_at_most = partial(Target, "≤")
value_at_least = partial(Target, "≥", of_ratio=False)
value_at_most = partial(Target, "≤", of_ratio=False)


HEADER: Final = (
    *("figure", "streamfrom", "opponent", "measured against"),
    *("ratio (spread)", "goal", "met"),
)
# Fits a terminal on half a screen.
COLUMNS: Final = 100


def table(figures: Sequence[Figure]) -> str:
    """Return *figures* as a table of at most COLUMNS columns; long cells take several lines."""
    lines = Table(*HEADER, box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    for each in figures:
        lines.add_row(*each.cells())
    console = Console(width=COLUMNS, markup=False, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(lines)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest of the *ordered* values that *percent* of them do not exceed.

    Raises:
        ValueError: there are no values.
    """
    if not ordered:
        raise ValueError("no values to take a percentile of")
    rank = -(-len(ordered) * percent // 100)  # rounded up: the nearest-rank definition
    return ordered[max(int(rank), 1) - 1]


def number(value: float) -> str:
    """Format *value* with about three significant digits and no exponent."""
    size = abs(value)
    if size >= 10_000:
        return f"{value / 1000:,.1f}k" if size < 1_000_000 else f"{value / 1_000_000:,.2f}M"
    if size >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.3g}"


def _ratio_text(ratios: Sequence[float]) -> str:
    low, middle, high = map(_one_ratio, (min(ratios), median(ratios), max(ratios)))
    return middle if low == high else f"{middle} ({low} to {high})"


def _one_ratio(value: float) -> str:
    return f"1/{1 / value:.0f}" if 0 < value < 0.1 else f"{value:.2f}"
