"""The parts that a page is made of: HTML as text, whatever came from a table escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from streamfrom.spark.jobs.analytics import number_format as say


_NAME_CHARS: Final = 60
_STYLES: Final = {"|": ' class="text"', "!": ' class="hot"'}


def card(title: str, inside: str, beside: str = "") -> str:
    """Return a framed part of the page with a title, and something next to that."""
    return f'<section class="card"><div class="top"><h2>{title}</h2>{beside}</div>{inside}</section>'


def legend(keys: "Iterable[tuple[str, str, str]]") -> str:
    """Return what the (name, style, kind) of a chart's colours mean."""
    items = "".join(
        f'<li><i class="{kind} {style}"></i>{escape(name)}</li>' for name, style, kind in keys
    )
    return f'<ul class="legend">{items}</ul>'


def table(heads: "Sequence[str]", rows: "Iterable[Sequence[str]]") -> str:
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


def meter(part: float, whole: float) -> str:
    """Return a small bar that is filled by *part* of *whole*."""
    width = 100 * part / whole if whole else 0
    return f'<span class="meter"><i style="width:{width:.1f}%"></i></span>'


def name(value: object) -> str:
    """Return a value from the table, escaped; a long one ends in an ellipsis and shows whole on hover."""
    if value is None:
        return f'<span class="sub">{say.UNKNOWN}</span>'
    text = str(value)
    if len(text) <= _NAME_CHARS:
        return escape(text)
    return f'<span title="{escape(text[:1000])}">{escape(text[:_NAME_CHARS])}…</span>'


def breakable(value: str) -> str:
    """Return a name, escaped, that a narrow page may break behind its dots and underscores."""
    return escape(value).replace(".", ".<wbr>").replace("_", "_<wbr>")


def none(sentence: str) -> str:
    """Return the sentence that stands where there is nothing to draw."""
    return f'<p class="none">{sentence}</p>'
