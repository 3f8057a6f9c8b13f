"""Foreign text, such as table names and servers' messages, made safe for a terminal or a text log."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return *text* with escapes for characters that a terminal would obey or take for a line's end: `\n`, `\x1b`, `\u202e`."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
