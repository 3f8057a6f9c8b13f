"""Window functions in an item of a select list: what they are partitioned by.

A window function sees the rows of one partition. If each partition is whole on one of several
servers, no more need be known of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.reading.statement_features import AGGREGATES
from streamfrom.sqlparse_ext.text.tokens import Cursor, Token, split_commas


if TYPE_CHECKING:
    Range = tuple[int, int]  # of tokens

_PARTITION_ENDS: Final = frozenset({"ORDER", "ROWS", "RANGE", "GROUPS"})


def read_windows(
    tokens: list[Token], template: bytes, start: int, end: int
) -> tuple[frozenset[str], list[list[Range]]] | None:
    """Return the functions that tokens[start:end] call, and what each window is partitioned by.

    Aggregates are not among the functions: each is a window function here. None where one is not,
    or where a window has a name or no partitions.
    """
    calls = set()
    windows = []
    cursor = Cursor(tokens, template, start)
    while cursor.at < end:
        token = cursor.take()
        if token.key == "OVER":
            partition = _partition(tokens, template, cursor.at)
            if partition is None:
                return None
            windows.append(partition)
        elif token.is_word and cursor.key == "(":
            calls.add(token.key)
        if token.key in AGGREGATES and cursor.key == "(":
            first = cursor.at
            cursor.skip_parens()
            # Inside of another one it would be of groups.
            is_bare = not any(each.key in AGGREGATES for each in tokens[first : cursor.at])
            if not is_bare or cursor.key != "OVER":
                return None
    return frozenset(calls - set(AGGREGATES)), windows


def _partition(tokens: list[Token], template: bytes, start: int) -> list[Range] | None:
    behind = Cursor(tokens, template, start)
    inside = Cursor(tokens, template, start + 1)
    if not behind.skip_parens() or not inside.accept("PARTITION", "BY"):
        return None
    end = min(inside.find(_PARTITION_ENDS), behind.at - 1)
    return split_commas(tokens, inside.at, end)
