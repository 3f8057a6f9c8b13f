"""The parts that a page is made of: HTML as text, whatever came from a table escaped."""

from collections.abc import Iterable
from html import escape
from typing import Final

from streamfrom.spark.jobs.analytics import number_format


_NAME_CHARS: Final = 60


def card(title: str, beside: str, inside: str) -> str:
    """Return a framed part of the page with a title, and something next to that."""
    return f'<section class="card"><div class="top"><h2>{title}</h2>{beside}</div>{inside}</section>'


def legend(keys: "Iterable[tuple[str, str, str]]") -> str:
    """Return what the (name, style, kind) of a chart's colours mean."""
    items = "".join(
        f'<li><i class="{kind} {style}"></i>{escape(name)}</li>' for name, style, kind in keys
    )
    return f'<ul class="legend">{items}</ul>'


def table(heads: "Iterable[str]", body: str) -> str:
    """Return a table; a head that begins with | stands over text."""
    cells = "".join(
        f'<th class="text">{head[1:]}</th>' if head.startswith("|") else f"<th>{head}</th>"
        for head in heads
    )
    return f'<div class="scroll"><table><tr>{cells}</tr>{body}</table></div>'


def meter(part: float, whole: float) -> str:
    """Return a small bar that is filled by *part* of *whole*."""
    width = 100 * part / whole if whole else 0
    return f'<span class="meter"><i style="width:{width:.1f}%"></i></span>'


def name(value: object) -> str:
    """Return a value from the table, escaped; a long one ends in an ellipsis and shows whole on hover."""
    if value is None:
        return f'<span class="sub">{number_format.UNKNOWN}</span>'
    text = str(value)
    if len(text) <= _NAME_CHARS:
        return escape(text)
    return f'<span title="{escape(text[:1000])}">{escape(text[:_NAME_CHARS])}…</span>'


def breakable(value: str) -> str:
    """Return a name, escaped, that a narrow page may break behind its dots and underscores."""
    return escape(value).replace(".", ".<wbr>").replace("_", "_<wbr>")


def none(what: str) -> str:
    """Return the sentence that stands where there is nothing to draw."""
    return f'<p class="none">No message was {what} in this time.</p>'
