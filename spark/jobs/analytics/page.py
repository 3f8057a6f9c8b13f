"""The HTML report: results in, one page out that needs no network and no script: pure.

Whatever came from a table is escaped where it is put in: names of tenants and ids are anybody's.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

from streamfrom.spark.jobs.analytics import charts, html_parts, number_format
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
from streamfrom.spark.jobs.analytics.style import STYLE


if TYPE_CHECKING:
    Row = Mapping[str, Any]

# So many shards have a colour of their own.
_COLOURS: Final = 8
_POISON_SHOWN: Final = 25
# Width and height of a chart on a telephone, in SVG units: not the same one made smaller, whose text is too small to read.
_NARROW: Final = (400, 240)
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
    """What the report shows. Its rows come from `spark.jobs.analytics.measures`.

    lag_is_bound: the lag is the time to the acknowledgement after one send, no time to a delivery.
    basis: (figure, what it is derived from) for the end of the page.
    """

    table: str
    low_ns: int
    high_ns: int
    bucket_ns: int
    made_ns: int
    total: "Row"
    windows: "Sequence[Row]"
    window_shards: "Sequence[Row]"
    shards: "Sequence[Row]"
    tenants: "Sequence[Row]"
    tenants_total: int
    attempts: "Sequence[Row]"
    written: "Sequence[Row]"
    waits: "Sequence[Row]"
    poison: "Sequence[Row]"
    oldest: "Sequence[Row]"
    poison_sends: int
    lag_is_bound: bool
    warnings: "Sequence[str]"
    basis: "Sequence[tuple[str, str]]"


def page(results: Results) -> str:
    """Return the report as an HTML document."""
    sections = [
        _header(results),
        "".join(_warnings(results)),
        _figures(results),
        _throughput(results),
        '<div class="two">',
        _latency(results, "to_ack", "Time to acknowledge", "from being written to the ack"),
        _latency(results, "lag", _lag_title(results), _lag_about(results)),
        "</div>",
        '<div class="two">',
        _attempts(results),
        _waiting(results),
        "</div>",
        _groups("Shards", "shard", results.shards, len(results.shards)),
        _groups("Tenants", "tenant", results.tenants, results.tenants_total),
        _messages(
            "Poison list",
            f"Not acknowledged after {results.poison_sends} sends or more, the most often sent first:"
            f" {min(len(results.poison), _POISON_SHOWN)} of {number_format.count(_suspects(results))}.",
            sorted(results.poison, key=lambda row: -row["sends"])[:_POISON_SHOWN],
            f"No message was sent {results.poison_sends} times without an acknowledgement.",
            "hot",
        ),
        _messages(
            "Ready for longest",
            "Messages that are due and with no consumer, the longest due first.",
            sorted(results.oldest, key=lambda row: -row["overdue_ms"]),
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
        f"<title>{escape(results.table)} · queue report</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(sections)}"
        f"<footer>Made by streamfrom-spark analytics at {number_format.moment(results.made_ns)} UTC."
        " All times are UTC.</footer></main></body></html>\n"
    )


def _header(results: Results) -> str:
    span = number_format.duration((results.high_ns - results.low_ns) / 1e6)
    return (
        f"<header><h1><small>Queue report</small>{html_parts.breakable(results.table)}</h1>"
        f"<p><b>{number_format.moment(results.low_ns)} to {number_format.moment(results.high_ns)}</b> UTC<br>"
        f"{span}, in windows of {number_format.duration(results.bucket_ns / 1e6)}</p></header>"
    )


def _warnings(results: Results) -> "Iterable[str]":
    if results.warnings:
        told = "".join(f"<p>{escape(text)}</p>" for text in results.warnings)
        yield f'<div class="warn" role="note">{told}</div>'


def _figures(results: Results) -> str:
    total = results.total
    span_s = (results.high_ns - results.low_ns) / 1e9
    by_state = _by_state(results)
    waiting = sum(by_state.values())
    longest = max((row["overdue_max_ms"] or 0 for row in results.waits), default=0)
    bound = "≤ " if results.lag_is_bound else ""
    ready = by_state[READY] + by_state[READY_AGAIN]
    told = [
        (
            "Acknowledged",
            number_format.count(total["acked"]),
            number_format.rate(total["acked"] / span_s),
        ),
        ("Time to ack, median", *_pair(total, "to_ack", "")),
        ("Delivery lag, median", *_pair(total, "lag", bound)),
        (
            "Sent more than once",
            number_format.share(total["retried"], total["acked"]),
            f"{number_format.count(total['retries'])} retries",
        ),
        (
            "Waiting now",
            number_format.count(waiting),
            f"{number_format.count(ready)} of them ready",
        ),
        (
            "Ready for longest",
            number_format.duration(longest) if longest else number_format.UNKNOWN,
            f"{number_format.count(_suspects(results))} on the poison list",
        ),
    ]
    cards = "".join(
        f'<div class="figure"><span>{name}</span><strong>{value}</strong><em>{more}</em></div>'
        for name, value, more in told
    )
    return f'<section class="figures">{cards}</section>'


def _pair(total: "Row", name: str, bound: str) -> tuple[str, str]:
    if not total[f"{name}_known"]:
        return number_format.UNKNOWN, "not known" if total["acked"] else "none acknowledged"
    return (
        f"{bound}{number_format.duration(total[f'{name}_p50_ms'])}",
        f"p99 {bound}{number_format.duration(total[f'{name}_p99_ms'])}",
    )


def _frame(results: Results, size: tuple[int, int]) -> PlotArea:
    first = results.low_ns - results.low_ns % results.bucket_ns
    starts = range(first, results.high_ns, results.bucket_ns)
    return PlotArea(results.low_ns, results.high_ns, starts, results.bucket_ns, *size)


def _drawn(results: Results, size: tuple[int, int], draw: "Callable[[PlotArea], str]") -> str:
    """Return a chart twice, of which the page's style shows the one that there is room for."""
    return "".join(
        f'<div class="{room}">{draw(_frame(results, of))}</div>'
        for room, of in (("roomy", size), ("narrow", _NARROW))
    )


def _seconds(frame: PlotArea, start_ns: int) -> float:
    """Return how much of a window lies in the report's time: the first and last may not wholly."""
    end_ns = min(start_ns + frame.bucket_ns, frame.high_ns)
    return (end_ns - max(start_ns, frame.low_ns)) / 1e9


def _throughput(results: Results) -> str:
    size = (1160, 270)
    frame = _frame(results, size)
    shards = [row["shard"] for row in results.shards]
    if len(shards) > _COLOURS:
        counted = {(row["window_ns"], ""): row["acked"] for row in results.windows}
        shards = [""]
    else:
        counted = {
            (row["window_ns"], row["shard"]): row["acked"] for row in results.window_shards
        }
    layers = [
        Series(
            f"acknowledged on {shard}" if shard else "acknowledged",
            f"s{place}",
            [counted.get((at, shard), 0) / _seconds(frame, at) for at in frame.starts_ns],
        )
        for place, shard in enumerate(shards)
    ]
    # Of a window that is hardly there a rate would be chance.
    whole_ns = [at for at in frame.starts_ns if _seconds(frame, at) > frame.bucket_ns / 2e9]
    new = dict.fromkeys(whole_ns, 0) | {
        row["window_ns"]: row["written"] for row in results.written
    }
    rates = [
        new[at] / _seconds(frame, at) if at in whole_ns else None for at in frame.starts_ns
    ]
    lines = [Series("written", "ink", rates)] if results.written else []
    keys = [(one.name, one.style, "fill") for one in layers]
    keys += [(one.name, one.style, "fill stroke") for one in lines]
    if not results.windows:
        return html_parts.card("Throughput", "", html_parts.none("acknowledged"))
    drawn = _drawn(results, size, lambda of: charts.bars(of, layers, lines))
    return html_parts.card("Throughput", html_parts.legend(keys), drawn)


def _latency(results: Results, name: str, title: str, about: str) -> str:
    if not results.total["acked"]:
        return html_parts.card(title, "", html_parts.none("acknowledged"))
    if not results.total[f"{name}_known"]:
        told = (
            '<p class="none">The table does not say when a message was written.'
            " <code>--created-column</code> names a column that does.</p>"
        )
        return html_parts.card(title, "", told)
    size = (570, 250)
    frame = _frame(results, size)
    rows = {row["window_ns"]: row for row in results.windows}
    series = [
        Series(
            f"p{percent}",
            f"p{percent}",
            [
                rows[at][f"{name}_p{percent}_ms"] if at in rows else None
                for at in frame.starts_ns
            ],
        )
        for percent in PERCENTS
    ]
    keys = [(one.name, one.style, "fill stroke") for one in reversed(series)]
    drawn = _drawn(results, size, lambda of: charts.lines(of, series, title))
    return html_parts.card(title, html_parts.legend(keys), f'<p class="sub">{about}</p>{drawn}')


def _lag_title(results: Results) -> str:
    return "Delivery lag, at most" if results.lag_is_bound else "Delivery lag"


def _lag_about(results: Results) -> str:
    return (
        "from being due to the ack, of messages that were sent once"
        if results.lag_is_bound
        else "from being due to the delivery"
    )


def _attempts(results: Results) -> str:
    rows = sorted(results.attempts, key=lambda row: row["sends"])
    if not rows:
        return html_parts.card("Sends until the ack", "", html_parts.none("acknowledged"))
    shown, rest = rows[:_COLOURS], rows[_COLOURS:]
    total = results.total["acked"]
    cells = [(number_format.count(row["sends"]), row["acked"]) for row in shown]
    if rest:
        cells.append((f"{rest[0]['sends']} and more", sum(row["acked"] for row in rest)))
    body = "".join(
        f'<tr><td class="name">{name}</td><td>{number_format.count(acked)}</td>'
        f"<td>{number_format.share(acked, total)}{html_parts.meter(acked, total)}</td></tr>"
        for name, acked in cells
    )
    return html_parts.card(
        "Sends until the ack", "", html_parts.table(("sends", "messages", "share"), body)
    )


def _by_state(results: Results) -> dict[str, int]:
    return {
        state: sum(row["messages"] for row in results.waits if row["state"] == state)
        for state in STATES
    }


def _waiting(results: Results) -> str:
    by_state = _by_state(results)
    if not any(by_state.values()):
        return html_parts.card(
            "What waits",
            "",
            '<p class="none">Nothing: no message is without an acknowledgement.</p>',
        )
    shares = [(state, _style(state), float(many)) for state, many in by_state.items()]
    body = []
    for state, many in by_state.items():
        rows = [row for row in results.waits if row["state"] == state]
        since = _longest(rows, "overdue_max_ms"), _longest(rows, "until_max_ms")
        when = f"for {since[0]}" if state in {READY, READY_AGAIN} else f"in {since[1]}"
        known = many and state not in {PARKED, BLOCKED}
        body.append(
            f'<tr><td class="name" title="{_STATES_TOLD[state]}"><i class="dot fill {_style(state)}"></i>{state}</td>'
            f"<td>{number_format.count(many)}</td><td>{when if known else number_format.UNKNOWN}</td>"
            f"<td>{_longest(rows, 'age_max_ms')}</td></tr>"
        )
    table = html_parts.table(
        ("state", "messages", "due, at most", "age, at most"), "".join(body)
    )
    return html_parts.card(
        "What waits", "", charts.shares(shares, "What waits, by state") + table
    )


def _suspects(results: Results) -> int:
    return sum(row["suspects"] for row in results.waits)


def _style(state: str) -> str:
    return state.replace(" ", "-")


def _longest(rows: "Sequence[Row]", name: str) -> str:
    return number_format.duration(
        max((row[name] for row in rows if row[name] is not None), default=None)
    )


def _groups(title: str, name: str, rows: "Sequence[Row]", total: int) -> str:
    if not rows:
        return ""  # nothing was acknowledged, which is said above, or its sender is unknown
    most = max(row["acked"] for row in rows)
    body = "".join(
        f'<tr><td class="name">{html_parts.name(row[name])}</td>'
        f"<td>{number_format.count(row['acked'])}{html_parts.meter(row['acked'], most)}</td>"
        f"<td>{number_format.share(row['retried'], row['acked'])}</td>"
        f"<td>{number_format.count(row['retries_p99'])}</td>"
        + "".join(
            f"<td>{number_format.duration(row[f'{kind}_p{percent}_ms'])}</td>"
            for kind in ("to_ack", "lag")
            for percent in PERCENTS
        )
        + "</tr>"
        for row in rows
    )
    heads = (
        name,
        "acknowledged",
        "retried",
        "retries p99",
        *(f"{kind} p{percent}" for kind in ("to ack", "lag") for percent in PERCENTS),
    )
    more = (
        f"the {len(rows)} busiest of {number_format.count(total)}" if total > len(rows) else ""
    )
    return html_parts.card(
        title, f'<span class="sub">{more}</span>' if more else "", html_parts.table(heads, body)
    )


def _messages(title: str, about: str, rows: "Sequence[Row]", none: str, sends: str = "") -> str:
    if not rows:
        return html_parts.card(title, "", f'<p class="none">{none}</p>')
    body = "".join(
        f'<tr><td class="name">{html_parts.name(row["id"])}</td><td class="text">{html_parts.name(row["shard"])}</td>'
        f'<td class="text">{html_parts.name(row["tenant"])}</td>'
        f'<td class="text"><i class="dot fill {_style(row["state"])}"></i>{row["state"]}</td>'
        f'<td class="{sends}">{number_format.count(row["sends"])}</td><td>{number_format.count(row["priority"])}</td>'
        f"<td>{number_format.duration(row['overdue_ms'])}</td><td>{number_format.duration(row['age_ms'])}</td>"
        f"<td>{number_format.moment(row['next_ns'] or None)}</td></tr>"
        for row in rows
    )
    heads = (
        "id",
        "|shard",
        "|tenant",
        "|state",
        "sends",
        "priority",
        "ready for",
        "age",
        "time_next",
    )
    return html_parts.card(
        title, "", f'<p class="sub">{about}</p>{html_parts.table(heads, body)}'
    )


def _basis(results: Results) -> str:
    told = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in results.basis
    )
    return html_parts.card("What each figure is derived from", "", f"<dl>{told}</dl>")
