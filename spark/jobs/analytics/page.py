"""The HTML report: results in, one page out that needs no network and no script: pure.

Whatever came from a table is escaped where it is put in: names of tenants and ids are anybody's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from streamfrom.spark.jobs.analytics import charts, number_format as say
from streamfrom.spark.jobs.analytics.charts import PlotArea, Series
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
    Row = Mapping[str, Any]

_NAME_CHARS: Final = 60
_STYLES: Final = {"|": ' class="text"', "!": ' class="hot"'}
# So many shards have a colour of their own.
_COLOURS: Final = 8
_POISON_SHOWN: Final = 25
_NONE: Final = "No message was acknowledged in this time."
_NO_TIME: Final = (
    "The table does not say when a message was written."
    " <code>--created-column</code> names a column that does."
)
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
    lag_is_bound: the lag is the time to the acknowledgement after one send, no time to a delivery.
    basis: (figure, what it is derived from) for the end of the page.
    """

    table: str
    low_ns: int
    high_ns: int
    bucket_ns: int
    made_ns: int
    rows: "Mapping[str, Sequence[Row]]"
    tenants_total: int
    poison_sends: int
    lag_is_bound: bool
    warnings: "Sequence[str]"
    basis: "Sequence[tuple[str, str]]"

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
    style = files(__package__).joinpath("report.css").read_text(encoding="utf-8")
    lag, about = "Delivery lag", "from being due to the delivery"
    if results.lag_is_bound:
        lag, about = (
            f"{lag}, at most",
            "from being due to the ack, of messages that were sent once",
        )
    shown = sorted(results.rows["poison"], key=lambda row: -row["sends"])[:_POISON_SHOWN]
    sections = [
        _header(results),
        *(_warned(results.warnings) if results.warnings else ()),
        _figures(results),
        _throughput(results),
        '<div class="two">',
        _latency(results, "to_ack", "Time to acknowledge", "from being written to the ack"),
        _latency(results, "lag", lag, about),
        '</div><div class="two">',
        _attempts(results),
        _waiting(results),
        "</div>",
        _groups("Shards", "shard", results.rows["by_shard"], 0),
        _groups("Tenants", "tenant", results.rows["tenants"], results.tenants_total),
        _messages(
            "Poison list",
            f"Not acknowledged after {results.poison_sends} sends or more, the most often sent first:"
            f" {len(shown)} of {say.count(results.suspects)}.",
            shown,
            f"No message was sent {results.poison_sends} times without an acknowledgement.",
            "!sends",
        ),
        _messages(
            "Ready for longest",
            "Messages that are due and with no consumer, the longest due first.",
            sorted(results.rows["oldest"], key=lambda row: -row["overdue_ms"]),
            "No message is known to be due.",
        ),
        _basis(results),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # A second lock behind the escaping: a page that may run and fetch nothing.
        '<meta http-equiv="Content-Security-Policy"'
        " content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(results.table)} · queue report</title><style>{style}</style></head>"
        f"<body><main>{''.join(sections)}"
        f"<footer>Made by streamfrom-spark analytics at {say.moment(results.made_ns)} UTC."
        " All times are UTC.</footer></main></body></html>\n"
    )


def _header(results: Results) -> str:
    span = say.duration((results.high_ns - results.low_ns) / 1e6)
    return (
        f"<header><h1><small>Queue report</small>{_breakable(results.table)}</h1>"
        f"<p><b>{say.moment(results.low_ns)} to {say.moment(results.high_ns)}</b> UTC<br>"
        f"{span}, in windows of {say.duration(results.bucket_ns / 1e6)}</p></header>"
    )


def _warned(warnings: "Sequence[str]") -> "Sequence[str]":
    told = [f"<p>{escape(text)}</p>" for text in warnings]
    return ['<div class="warn" role="note">', *told, "</div>"]


def _figures(results: Results) -> str:
    total, waits = results.total, results.rows["waits"]
    span_s = (results.high_ns - results.low_ns) / 1e9
    waiting = by_state(waits)
    ready = waiting[READY] + waiting[READY_AGAIN]
    longest = max((row["overdue_max_ms"] or 0 for row in waits), default=0)
    retried = say.share(total["retried"], total["acked"])
    told = [
        ("Acknowledged", say.count(total["acked"]), say.rate(total["acked"] / span_s)),
        ("Time to ack, median", *_pair(total, "to_ack", "")),
        ("Delivery lag, median", *_pair(total, "lag", "≤ " if results.lag_is_bound else "")),
        ("Sent more than once", retried, f"{say.count(total['retries'])} retries"),
        (
            "Waiting now",
            say.count(sum(waiting.values())),
            f"{say.count(ready)} of them ready",
        ),
        (
            "Ready for longest",
            say.duration(longest or None),
            f"{say.count(results.suspects)} on the poison list",
        ),
    ]
    cards = "".join(
        f'<div class="figure"><span>{name}</span><strong>{value}</strong><em>{more}</em></div>'
        for name, value, more in told
    )
    return f'<section class="figures">{cards}</section>'


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


def _throughput(results: Results) -> str:
    frame = _frame(results, 11)
    if not results.rows["by_window"]:
        return _card("Throughput", _empty(_NONE))
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
    lines = [Series("written", "ink", rates)] if written else []
    keys = [(one.name, one.style, "fill") for one in layers]
    keys += [(one.name, one.style, "fill stroke") for one in lines]
    return _card("Throughput", charts.bars(frame, layers, lines), _legend(keys))


def _latency(results: Results, name: str, title: str, about: str) -> str:
    if not results.total["acked"]:
        return _card(title, _empty(_NONE))
    if not results.total[f"{name}_known"]:
        return _card(title, _empty(_NO_TIME))
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
    keys = [(one.name, one.style, "fill stroke") for one in reversed(series)]
    drawn = charts.lines(frame, series, title)
    return _card(title, f'<p class="sub">{about}</p>{drawn}', _legend(keys))


def _attempts(results: Results) -> str:
    title = "Sends until the ack"
    rows = sorted(results.rows["attempts"], key=lambda row: row["sends"])
    if not rows:
        return _card(title, _empty(_NONE))
    total, rest = results.total["acked"], rows[_COLOURS:]
    counted = [(say.count(row["sends"]), row["acked"]) for row in rows[:_COLOURS]]
    if rest:
        counted.append((f"{rest[0]['sends']} and more", sum(row["acked"] for row in rest)))
    cells = [
        (sends, say.count(acked), say.share(acked, total) + _meter(acked, total))
        for sends, acked in counted
    ]
    return _card(title, _table(("sends", "messages", "share"), cells))


def _waiting(results: Results) -> str:
    title = "What waits"
    counted = by_state(results.rows["waits"])
    if not any(counted.values()):
        return _card(title, _empty("Nothing: no message is without an acknowledgement."))
    cells = []
    for state, many in counted.items():
        rows = [row for row in results.rows["waits"] if row["state"] == state]
        when = say.UNKNOWN
        if many and state in {READY, READY_AGAIN}:
            when = f"for {_longest(rows, 'overdue_max_ms')}"
        elif many and state in {IN_FLIGHT, SCHEDULED}:
            when = f"in {_longest(rows, 'until_max_ms')}"
        name = f'<span title="{_STATES_TOLD[state]}">{_state(state)}</span>'
        cells.append((name, say.count(many), when, _longest(rows, "age_max_ms")))
    shares = [(state, _style(state), float(many)) for state, many in counted.items()]
    table = _table(("state", "messages", "due, at most", "age, at most"), cells)
    return _card(title, charts.shares(shares, "What waits, by state") + table)


def _style(state: str) -> str:
    return state.replace(" ", "-")


def _state(state: str) -> str:
    return f'<i class="dot fill {_style(state)}"></i>{state}'


def _longest(rows: "Sequence[Row]", name: str) -> str:
    return say.duration(max((row[name] for row in rows if row[name] is not None), default=None))


def _groups(title: str, name: str, rows: "Sequence[Row]", total: int) -> str:
    if not rows:
        return ""  # nothing was acknowledged, which is said above, or its sender is unknown
    most = max(row["acked"] for row in rows)
    delays = [(kind, f"p{percent}") for kind in ("to_ack", "lag") for percent in PERCENTS]
    cells = [
        (
            _named(row[name]),
            say.count(row["acked"]) + _meter(row["acked"], most),
            say.share(row["retried"], row["acked"]),
            say.count(row["retries_p99"]),
            *(say.duration(row[f"{kind}_{percent}_ms"]) for kind, percent in delays),
        )
        for row in rows
    ]
    told = [f"{kind.replace('_', ' ')} {percent}" for kind, percent in delays]
    heads = (name, "acknowledged", "retried", "retries p99", *told)
    more = f"the {len(rows)} busiest of {say.count(total)}" if total > len(rows) else ""
    beside = f'<span class="sub">{more}</span>' if more else ""
    return _card(title, _table(heads, cells), beside)


def _messages(
    title: str, about: str, rows: "Sequence[Row]", none: str, sends: str = "sends"
) -> str:
    if not rows:
        return _card(title, _empty(none))
    cells = [
        (
            *(_named(row[name]) for name in ("id", "shard", "tenant")),
            _state(row["state"]),
            *(say.count(row[name]) for name in ("sends", "priority")),
            *(say.duration(row[name]) for name in ("overdue_ms", "age_ms")),
            say.moment(row["next_ns"] or None),
        )
        for row in rows
    ]
    heads = ("id", "|shard", "|tenant", "|state", sends)
    table = _table((*heads, "priority", "ready for", "age", "time_next"), cells)
    return _card(title, f'<p class="sub">{about}</p>{table}')


def _basis(results: Results) -> str:
    told = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in results.basis
    )
    return _card("What each figure is derived from", f"<dl>{told}</dl>")


# --- the parts that a page is made of ------------------------------------------------------------


def _card(title: str, inside: str, beside: str = "") -> str:
    """Return a framed part of the page with a title, and something next to that."""
    return f'<section class="card"><div class="top"><h2>{title}</h2>{beside}</div>{inside}</section>'


def _legend(keys: "Iterable[tuple[str, str, str]]") -> str:
    """Return what the (name, style, kind) of a chart's colours mean."""
    items = "".join(
        f'<li><i class="{kind} {style}"></i>{escape(name)}</li>' for name, style, kind in keys
    )
    return f'<ul class="legend">{items}</ul>'


def _table(heads: "Sequence[str]", rows: "Iterable[Sequence[str]]") -> str:
    """Return a table of cells that are HTML: names, then numbers, or text under a head that begins with |.

    What stands under a head that begins with ! is what is wrong.
    """
    styles = [' class="name"', *(_STYLES.get(head[0], "") for head in heads[1:])]
    lines = [
        "".join(
            f'<th class="text">{head[1:]}</th>'
            if head[0] == "|"
            else f"<th>{head.lstrip('!')}</th>"
            for head in heads
        )
    ]
    lines += [
        "".join(f"<td{style}>{cell}</td>" for style, cell in zip(styles, row, strict=True))
        for row in rows
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="scroll"><table>{body}</table></div>'


def _meter(part: float, whole: float) -> str:
    """Return a small bar that is filled by *part* of *whole*."""
    return f'<span class="meter"><i style="width:{100 * part / whole:.1f}%"></i></span>'


def _named(value: object) -> str:
    """Return a value from the table, escaped; a long one ends in an ellipsis and shows whole on hover."""
    if value is None:
        return f'<span class="sub">{say.UNKNOWN}</span>'
    text = str(value)
    if len(text) <= _NAME_CHARS:
        return escape(text)
    return f'<span title="{escape(text[:1000])}">{escape(text[:_NAME_CHARS])}…</span>'


def _breakable(value: str) -> str:
    """Return a name, escaped, that a narrow page may break behind its dots and underscores."""
    return escape(value).replace(".", ".<wbr>").replace("_", "_<wbr>")


def _empty(sentence: str) -> str:
    """Return the sentence that stands where there is nothing to draw."""
    return f'<p class="none">{sentence}</p>'
