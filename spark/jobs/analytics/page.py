"""The HTML report: results in, one page out that needs no network and no script: pure.

`report.html` is the page. It escapes all values from tables, because anyone may choose names of tenants and ids. This module computes
the heights of its charts, which the style sheet draws, and shortens long lists.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, StrictUndefined

from streamfrom.spark.jobs.analytics import number_format as say
from streamfrom.spark.jobs.analytics.measures import PERCENTS
from streamfrom.spark.jobs.analytics.message_facts import STATES


if TYPE_CHECKING:
    Row = Mapping[str, Any]
    # A name, a style, and values by the start of their windows.
    Series = tuple[str, str, Mapping[int, float | None]]

# This many shards have their own colour.
_COLOURS: Final = 8
_POISON_SHOWN: Final = 25
_TIMES: Final = ("overdue_max_ms", "until_max_ms", "age_max_ms")


@dataclass(frozen=True, slots=True)
class Results:
    """The data of the report.

    rows: the tables from `spark.jobs.analytics.measures`, by name; `tenants` are the busiest of *tenants_total*.
    made_ns: the time of the shards' clocks after the waiting messages were read.
    created: the column with the time at which a message was written, or None.
    """

    table: str
    low_ns: int
    high_ns: int
    bucket_ns: int
    made_ns: int
    rows: "Mapping[str, Sequence[Row]]"
    tenants_total: int
    poison_sends: int
    created: str | None

    @property
    def starts_ns(self) -> range:
        """The start of each window; the first and the last may lie only partly in the report's time."""
        return range(self.low_ns - self.low_ns % self.bucket_ns, self.high_ns, self.bucket_ns)

    @property
    def suspects(self) -> int:
        """How many messages qualify for the poison list."""
        return sum(row["suspects"] for row in self.rows["waits"])

    @property
    def states(self) -> "list[Row]":
        """How many messages are in each state on all shards, and the longest of their times."""
        found: list[Row] = []
        for state in STATES:
            rows = [row for row in self.rows["waits"] if row["state"] == state]
            times = {name: max((row[name] or 0 for row in rows), default=0) for name in _TIMES}
            many = sum(row["messages"] for row in rows)
            found.append({"state": state, "messages": many} | times)
        return found


@dataclass(frozen=True, slots=True)
class Chart:
    """Values by window as adjacent columns: pure numbers that the page draws by its style sheet.

    keys: the name and the style of each series, for a legend.
    levels: the values at the top, the middle and the bottom.
    columns: for each window the text under the pointer, and the style of each value and its height in percent.
    """

    keys: "Sequence[tuple[str, str]]"
    levels: "Sequence[str]"
    columns: "Sequence[tuple[str, Sequence[tuple[str, float]]]]"


def page(results: Results) -> str:
    """Return the report as an HTML document."""
    here = files(__package__)
    html = here.joinpath("report.html").read_text(encoding="utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(html)
    (total,) = results.rows["by_table"]
    return template.render(
        say=say,
        style=here.joinpath("report.css").read_text(encoding="utf-8"),
        results=results,
        states=results.states,
        meanings=STATES,
        total=total,
        throughput=_throughput(results),
        to_ack=_to_ack(results),
        attempts=_attempts(results),
        poison=sorted(results.rows["poison"], key=lambda row: -row["sends"])[:_POISON_SHOWN],
    )


def _throughput(results: Results) -> Chart:
    """Return acknowledged messages as stacked blocks, with written messages as marks over them."""
    shards = [row["shard"] for row in results.rows["by_shard"]]
    counts = results.rows["by_window_shard"]
    if not 0 < len(shards) <= _COLOURS:
        shards, counts = [""], results.rows["by_window"]
    seconds = {
        at: (min(at + results.bucket_ns, results.high_ns) - max(at, results.low_ns)) / 1e9
        for at in results.starts_ns
    }
    acked = {(row.get("shard", ""), row["window_ns"]): row["acked"] for row in counts}
    layers = [
        {at: acked.get((shard, at), 0) / seconds[at] for at in seconds} for shard in shards
    ]
    heights = [sum(layer[at] for layer in layers) for at in seconds]
    rates: list[Series] = [
        (f"acknowledged on {shard}" if shard else "acknowledged", f"block s{place}", layer)
        for place, (shard, layer) in enumerate(zip(shards, layers, strict=True))
    ]
    if written := {row["window_ns"]: row["written"] for row in results.rows["written"]}:
        # The rate of a window that is hardly covered would be random.
        whole = [at for at in seconds if seconds[at] > results.bucket_ns / 2e9]
        new = {at: written.get(at, 0) / seconds[at] for at in whole}
        heights += new.values()
        rates.append(("written", "mark ink", new))
    highest = max(heights) or 1
    levels = [highest, highest / 2, 0]
    return _chart(results, rates, levels, say.rate, lambda rate: rate / highest)


def _to_ack(results: Results) -> Chart:
    """Return percentiles of durations as marks on a logarithmic scale."""
    names = [f"p{percent}" for percent in reversed(PERCENTS)]
    rows = results.rows["by_window"]
    series: list[Series] = [
        (name, f"mark {name}", {row["window_ns"]: row[f"to_ack_{name}_ms"] for row in rows})
        for name in names
    ]
    known = [value for _, _, values in series for value in values.values() if value] or [1.0]
    # Leave some room, so that there is a scale even if all are equal.
    low, high = min(known) / 1.25, max(known) * 1.25

    def part(value: float) -> float:
        return math.log(max(value, low) / low) / math.log(high / low)

    return _chart(results, series, [high, math.sqrt(low * high), low], say.duration, part)


def _chart(
    results: Results,
    series: "Sequence[Series]",
    levels: "Sequence[float]",
    text_of: "Callable[[float | None], str]",
    part_of: "Callable[[float], float]",
) -> Chart:
    columns = []
    for at in results.starts_ns:
        here = [(name, style, values.get(at)) for name, style, values in series]
        drawn = [(style, 100 * part_of(value)) for _, style, value in here if value is not None]
        told = [f"{name}: {text_of(value)}" for name, _, value in here]
        columns.append(("\n".join([say.moment(at), *told]) if drawn else "", drawn))
    keys = [(name, style) for name, style, _ in series]
    return Chart(keys, list(map(text_of, levels)), columns)


def _attempts(results: Results) -> list[tuple[str, int]]:
    """Return the number of messages acknowledged after each number of sends, with the rare ones grouped."""
    rows = sorted(results.rows["attempts"], key=lambda row: row["sends"])
    counted = [(say.count(row["sends"]), row["acked"]) for row in rows[:_COLOURS]]
    if rest := rows[_COLOURS:]:
        counted.append((f"{rest[0]['sends']} and more", sum(row["acked"] for row in rest)))
    return counted
