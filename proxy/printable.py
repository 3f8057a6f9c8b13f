"""Texts of others, such as names of tables and a server's words, on a terminal or in a log of text."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return *text* with escapes for what a terminal would obey or take for a line's end: `\n`, `\x1b`, `\u202e`."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
