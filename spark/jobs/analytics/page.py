"""The HTML report: results in, one page out that needs no network and no script: pure.

`report.html` is the page, which escapes what comes from a table: names of tenants and ids are anybody's. Here are its charts, and
what it shows of long lists.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, StrictUndefined

from streamfrom.spark.jobs.analytics import charts, number_format as say
from streamfrom.spark.jobs.analytics.charts import Chart, PlotArea, Series
from streamfrom.spark.jobs.analytics.measures import PERCENTS
from streamfrom.spark.jobs.analytics.message_facts import STATES


if TYPE_CHECKING:
    Row = Mapping[str, Any]

# So many shards have a colour of their own.
_COLOURS: Final = 8
_POISON_SHOWN: Final = 25
_TIMES: Final = ("overdue_max_ms", "until_max_ms", "age_max_ms")


@dataclass(frozen=True, slots=True)
class Results:
    """What the report shows.

    rows: what `spark.jobs.analytics.measures` counted, by the name of the result; `tenants` are the busiest of *tenants_total*.
    made_ns: the time of the shards' clocks when the messages that wait had been read.
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
    def suspects(self) -> int:
        """How many messages belong on the poison list."""
        return sum(row["suspects"] for row in self.rows["waits"])

    @property
    def states(self) -> "list[Row]":
        """How many messages wait in each state on all shards, and the longest of their times."""
        found: list[Row] = []
        for state in STATES:
            rows = [row for row in self.rows["waits"] if row["state"] == state]
            times = {name: max((row[name] or 0 for row in rows), default=0) for name in _TIMES}
            many = sum(row["messages"] for row in rows)
            found.append({"state": state, "messages": many} | times)
        return found


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


def _frame(results: Results) -> PlotArea:
    first = results.low_ns - results.low_ns % results.bucket_ns
    starts = range(first, results.high_ns, results.bucket_ns)
    return PlotArea(results.low_ns, results.high_ns, starts, results.bucket_ns)


def _seconds(frame: PlotArea, start_ns: int) -> float:
    """Return how much of a window lies in the report's time: the first and last may not wholly."""
    end_ns = min(start_ns + frame.bucket_ns, frame.high_ns)
    return (end_ns - max(start_ns, frame.low_ns)) / 1e9


def _throughput(results: Results) -> Chart:
    frame = _frame(results)
    shards = [row["shard"] for row in results.rows["by_shard"]]
    counts = results.rows["by_window_shard"]
    if not 0 < len(shards) <= _COLOURS:
        shards, counts = [""], results.rows["by_window"]
    counted = {(row["window_ns"], row.get("shard", "")): row["acked"] for row in counts}
    layers = [
        Series(
            f"acknowledged on {shard}" if shard else "acknowledged",
            f"s{place}",
            [counted.get((at, shard), 0) / _seconds(frame, at) for at in frame.starts_ns],
        )
        for place, shard in enumerate(shards)
    ]
    written = {row["window_ns"]: row["written"] for row in results.rows["written"]}
    # Of a window that is hardly there a rate would be chance.
    rates = [
        written.get(at, 0) / seconds
        if (seconds := _seconds(frame, at)) > frame.bucket_ns / 2e9
        else None
        for at in frame.starts_ns
    ]
    return charts.bars(frame, layers, [Series("written", "ink", rates)] if written else [])


def _to_ack(results: Results) -> Chart:
    frame = _frame(results)
    rows = {row["window_ns"]: row for row in results.rows["by_window"]}
    series = [
        Series(
            percent,
            percent,
            [rows.get(at, {}).get(f"to_ack_{percent}_ms") for at in frame.starts_ns],
        )
        for percent in (f"p{percent}" for percent in PERCENTS)
    ]
    return charts.lines(frame, series, "Time to acknowledge")


def _attempts(results: Results) -> list[tuple[str, int]]:
    """Return how many messages were acknowledged after how many sends, the rare ones together."""
    rows = sorted(results.rows["attempts"], key=lambda row: row["sends"])
    counted = [(say.count(row["sends"]), row["acked"]) for row in rows[:_COLOURS]]
    if rest := rows[_COLOURS:]:
        counted.append((f"{rest[0]['sends']} and more", sum(row["acked"] for row in rest)))
    return counted
