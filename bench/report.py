"""Figures, goals, and the one table they end in."""

import statistics
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Final, Self


class Goal(StrEnum):
    """Which side of its limit a figure must be on."""

    AT_LEAST = "≥"
    AT_MOST = "≤"


@dataclass(frozen=True, slots=True)
class Target:
    """What the design promises of one figure.

    of_ratio: the limit is one of the ratio, ours to theirs; otherwise of our figure itself.
    """

    goal: Goal
    limit: float
    of_ratio: bool = True

    def is_met(self, value: float) -> bool:
        """Return whether *value* keeps the promise."""
        return value >= self.limit if self.goal is Goal.AT_LEAST else value <= self.limit

    def text(self, unit: str) -> str:
        """Return the promise as the table shows it."""
        if not self.of_ratio:
            return f"{self.goal} {number(self.limit)} {unit}"
        if self.goal is Goal.AT_MOST and self.limit < 1:
            return f"{self.goal} 1/{1 / self.limit:.0f}"
        return f"{self.goal} {number(self.limit)} x"


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one side, a value per run."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        """Make one of any values."""
        return cls(tuple(values))

    @property
    def median(self) -> float:
        """The middle value, on which all verdicts rest."""
        return statistics.median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return min(self.values), max(self.values)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    ours, theirs: values of the same unit; theirs is None where the promise is absolute.
    against: what theirs is.
    facts: more about the runs, for the JSON file.
    """

    name: str
    unit: str
    ours: Series
    against: str = ""
    theirs: Series | None = None
    target: Target | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> Series | None:
        """Ours to theirs, pair by pair where the runs were pairs, else median to median."""
        if self.theirs is None:
            return None
        ours, theirs = self.ours.values, self.theirs.values
        if len(ours) != len(theirs):
            ours, theirs = (self.ours.median,), (self.theirs.median,)
        # A side without a single query or millisecond counts as the least that can be told.
        return Series.of(a / max(b, 1e-9) for a, b in zip(ours, theirs, strict=True))

    @property
    def is_met(self) -> bool | None:
        """Whether the promise is kept; None where there is none."""
        if self.target is None:
            return None
        if not self.target.of_ratio:
            return self.target.is_met(self.ours.median)
        assert self.ratio is not None
        return self.target.is_met(self.ratio.median)

    def cells(self) -> tuple[str, ...]:
        """Return the line as the table shows it."""
        ratio = self.ratio
        met = {None: "", True: "yes", False: "NO"}[self.is_met]
        return (
            self.name,
            f"{number(self.ours.median)} {self.unit}",
            f"{number(self.theirs.median)} {self.unit}" if self.theirs else "",
            self.against,
            _ratio_text(ratio) if ratio else "",
            self.target.text(self.unit) if self.target else "",
            met,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the line with all its values."""
        ratio = self.ratio
        return {
            "figure": self.name,
            "unit": self.unit,
            "ours": list(self.ours.values),
            "against": self.against,
            "theirs": list(self.theirs.values) if self.theirs else None,
            "ratio": ratio.median if ratio else None,
            "ratio_spread": list(ratio.spread) if ratio else None,
            "goal": self.target.text(self.unit) if self.target else None,
            "met": self.is_met,
            "facts": dict(self.facts),
        }


def figure(
    name: str,
    unit: str,
    ours: Iterable[float],
    against: str = "",
    theirs: Iterable[float] | None = None,
    target: Target | None = None,
    **facts: Any,
) -> Figure:
    """Return a figure of both sides' values, one a run."""
    their_values = None if theirs is None else Series.of(theirs)
    return Figure(name, unit, Series.of(ours), against, their_values, target, facts)


def ratio_at_least(limit: float) -> Target:
    """Return the promise that ours is at least so many times theirs."""
    return Target(Goal.AT_LEAST, limit)


def ratio_at_most(limit: float) -> Target:
    """Return the promise that ours is at most so many times theirs."""
    return Target(Goal.AT_MOST, limit)


def value_at_least(limit: float) -> Target:
    """Return the promise that our figure is at least *limit*."""
    return Target(Goal.AT_LEAST, limit, of_ratio=False)


def value_at_most(limit: float) -> Target:
    """Return the promise that our figure is at most *limit*."""
    return Target(Goal.AT_MOST, limit, of_ratio=False)


HEADER = (
    "figure",
    "streamfrom",
    "opponent",
    "measured against",
    "ratio (spread)",
    "goal",
    "met",
)


# As wide as a terminal on half a screen.
COLUMNS: Final = 100
GAP: Final = "  "


def table(figures: Sequence[Figure]) -> str:
    """Return *figures* as an aligned table of at most COLUMNS columns, where words allow it; long cells take several lines."""
    rows = [HEADER, *(figure.cells() for figure in figures)]
    widths = _widths(rows)
    wrapped = [_wrapped(row, widths) for row in rows]
    wrapped.insert(1, [["-" * width for width in widths]])
    return "\n".join(
        GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for lines in wrapped
        for line in lines
    )


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return how wide each column is: the widest give way until the table fits, or nothing but single words are left."""
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    least = [max(len(word) for cell in column for word in cell.split()) for column in columns]
    least[0] += len(GAP)
    while sum(widths) + len(GAP) * (len(widths) - 1) > COLUMNS:
        over = [n for n, width in enumerate(widths) if width > least[n]]
        if not over:
            break
        widths[max(over, key=widths.__getitem__)] -= 1
    return widths


def _wrapped(row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """Return the lines that *row* takes; what begins with a blank goes on with the figure's name."""
    indents = [GAP, *[""] * (len(row) - 1)]
    cells = [
        textwrap.wrap(cell, width, subsequent_indent=indent)
        for cell, width, indent in zip(row, widths, indents, strict=True)
    ]
    return [list(line) for line in zip_longest(*cells, fillvalue="")]


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
    """Return *value* with about three significant digits and no exponent."""
    size = abs(value)
    if size >= 10_000:
        return f"{value / 1000:,.1f}k" if size < 1_000_000 else f"{value / 1_000_000:,.2f}M"
    if size >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.3g}"


def _ratio_text(ratio: Series) -> str:
    low, high = ratio.spread
    text = _one_ratio(ratio.median)
    return text if low == high else f"{text} ({_one_ratio(low)} to {_one_ratio(high)})"


def _one_ratio(value: float) -> str:
    return f"1/{1 / value:.0f}" if 0 < value < 0.1 else f"{value:.2f}"
