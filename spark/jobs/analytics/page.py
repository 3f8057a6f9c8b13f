"""The HTML report: results in, one page out that needs no network and no script: pure.

`report.html` is the page, which escapes what comes from a table: names of tenants and ids are anybody's. Here is what stands on it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, StrictUndefined

from streamfrom.spark.jobs.analytics import charts, number_format as say
from streamfrom.spark.jobs.analytics.charts import Chart, PlotArea, Series
from streamfrom.spark.jobs.analytics.measures import PERCENTS
from streamfrom.spark.jobs.analytics.message_facts import (
    BLOCKED,
    IN_FLIGHT,
    PARKED,
    READY,
    READY_AGAIN,
    SCHEDULED,
    STATES,
)


if TYPE_CHECKING:
    from streamfrom.spark.jobs.analytics.message_facts import Told

    Row = Mapping[str, Any]

# So many shards have a colour of their own.
_COLOURS: Final = 8
_POISON_SHOWN: Final = 25
_BAR_WIDTH: Final = 1000
_STATES_TOLD: Final = {
    READY: "never delivered, and should be",
    READY_AGAIN: "delivered, and waited long enough",
    PARKED: "not delivered until you requeue them",
    IN_FLIGHT: "with a consumer, or waiting for their next attempt",
    SCHEDULED: "for the future, never delivered",
    BLOCKED: "waiting for a group of messages",
}


@dataclass(frozen=True, slots=True)
class Results:
    """What the report shows.

    rows: what `spark.jobs.analytics.measures` counted, by the name of the result; `tenants` are the busiest of *tenants_total*.
    told: the columns that the figures are made of. Without one for the delivery the lag is the time to the ack after one send.
    """

    table: str
    low_ns: int
    high_ns: int
    bucket_ns: int
    made_ns: int
    rows: "Mapping[str, Sequence[Row]]"
    tenants_total: int
    poison_sends: int
    warnings: "Sequence[str]"
    told: "Told"

    @property
    def total(self) -> "Row":
        """The measures of all acknowledged messages."""
        return self.rows["by_table"][0]

    @property
    def suspects(self) -> int:
        """How many messages belong on the poison list."""
        return sum(row["suspects"] for row in self.rows["waits"])


def by_state(waits: "Sequence[Row]") -> dict[str, int]:
    """Return how many messages wait in each state."""
    return {
        state: sum(row["messages"] for row in waits if row["state"] == state)
        for state in STATES
    }


def page(results: Results) -> str:
    """Return the report as an HTML document."""
    here = files(__package__)
    html = here.joinpath("report.html").read_text(encoding="utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(html)
    return template.render(
        say=say,
        style=here.joinpath("report.css").read_text(encoding="utf-8"),
        results=results,
        total=results.total,
        figures=_figures(results),
        throughput=_throughput(results),
        to_ack=_latency(results, "to_ack", "Time to acknowledge"),
        lag=_latency(results, "lag", "Delivery lag"),
        attempts=_attempts(results),
        shares=[*_shares(by_state(results.rows["waits"]))],
        waiting=[*_waiting(results)],
        poison=sorted(results.rows["poison"], key=lambda row: -row["sends"])[:_POISON_SHOWN],
    )


def _figures(results: Results) -> list[tuple[str, str, str]]:
    """Return the name and value of each of the figures at the top, and what stands below."""
    total, waits = results.total, results.rows["waits"]
    span_s = (results.high_ns - results.low_ns) / 1e9
    waiting = by_state(waits)
    ready = waiting[READY] + waiting[READY_AGAIN]
    longest = max((row["overdue_max_ms"] or 0 for row in waits), default=0)
    retried = say.share(total["retried"], total["acked"])
    bound = "" if results.told.delivered else "≤ "
    suspects = f"{say.count(results.suspects)} on the poison list"
    return [
        ("Acknowledged", say.count(total["acked"]), say.rate(total["acked"] / span_s)),
        ("Time to ack, median", *_pair(total, "to_ack", "")),
        ("Delivery lag, median", *_pair(total, "lag", bound)),
        ("Sent more than once", retried, f"{say.count(total['retries'])} retries"),
        ("Waiting now", say.count(sum(waiting.values())), f"{say.count(ready)} of them ready"),
        ("Ready for longest", say.duration(longest or None), suspects),
    ]


def _pair(total: "Row", name: str, bound: str) -> tuple[str, str]:
    if not total[f"{name}_known"]:
        return say.UNKNOWN, "not known" if total["acked"] else "none acknowledged"
    median, p99 = (say.duration(total[f"{name}_p{percent}_ms"]) for percent in (50, 99))
    return f"{bound}{median}", f"p99 {bound}{p99}"


def _frame(results: Results, ticks_max: int) -> PlotArea:
    first = results.low_ns - results.low_ns % results.bucket_ns
    starts = range(first, results.high_ns, results.bucket_ns)
    return PlotArea(results.low_ns, results.high_ns, starts, results.bucket_ns, ticks_max)


def _seconds(frame: PlotArea, start_ns: int) -> float:
    """Return how much of a window lies in the report's time: the first and last may not wholly."""
    end_ns = min(start_ns + frame.bucket_ns, frame.high_ns)
    return (end_ns - max(start_ns, frame.low_ns)) / 1e9


def _throughput(results: Results) -> Chart:
    frame = _frame(results, 11)
    shards = [row["shard"] for row in results.rows["by_shard"]]
    counts = results.rows["by_window_shard"]
    if len(shards) > _COLOURS:
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


def _latency(results: Results, name: str, about: str) -> Chart:
    frame = _frame(results, 5)
    rows = {row["window_ns"]: row for row in results.rows["by_window"]}
    series = [
        Series(
            percent,
            percent,
            [rows.get(at, {}).get(f"{name}_{percent}_ms") for at in frame.starts_ns],
        )
        for percent in (f"p{percent}" for percent in PERCENTS)
    ]
    return charts.lines(frame, series, about)


def _attempts(results: Results) -> list[tuple[str, int]]:
    """Return how many messages were acknowledged after how many sends, the rare ones together."""
    rows = sorted(results.rows["attempts"], key=lambda row: row["sends"])
    counted = [(say.count(row["sends"]), row["acked"]) for row in rows[:_COLOURS]]
    if rest := rows[_COLOURS:]:
        counted.append((f"{rest[0]['sends']} and more", sum(row["acked"] for row in rest)))
    return counted


def _shares(counted: "Mapping[str, int]") -> "Iterator[tuple[str, float, float, str]]":
    """Yield each state that messages wait in, with its place and width on a bar and the text for it."""
    total, left = sum(counted.values()), 0.0
    for state, many in counted.items():
        width = many / (total or 1) * _BAR_WIDTH
        if many:
            text = f"{state}: {say.count(many)} ({say.share(many, total)})"
            yield state, round(left, 2), round(max(width - 2, 1.5), 2), text
        left += width


def _waiting(results: Results) -> "Iterator[tuple[str, str, int, str, str]]":
    """Yield each state with its meaning, how many messages wait in it, since or until when at most, and their age."""
    for state, many in by_state(results.rows["waits"]).items():
        rows = [row for row in results.rows["waits"] if row["state"] == state]
        when = say.UNKNOWN
        if many and state in {READY, READY_AGAIN}:
            when = f"for {_longest(rows, 'overdue_max_ms')}"
        elif many and state in {IN_FLIGHT, SCHEDULED}:
            when = f"in {_longest(rows, 'until_max_ms')}"
        yield state, _STATES_TOLD[state], many, when, _longest(rows, "age_max_ms")


def _longest(rows: "Sequence[Row]", name: str) -> str:
    return say.duration(max((row[name] for row in rows if row[name] is not None), default=None))
