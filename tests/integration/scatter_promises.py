"""What of an answer to a random SELECT a server promises: its order, but for what is up to a plan or wrong on MariaDB."""

import re
from itertools import pairwise

from tests.integration.scatter import FLOATS, Answer, folded


# A number is too large; BIT_AND of strings of several lengths.
OF_VALUES = {1690, 3513}
# By the proxy; BIT_OR of byte strings, which it refuses, by a shard of MySQL before it can.
REFUSED = {1235, 3514}
SUM_OF_FLOATS = re.compile(r"\b(SUM|AVG)\((DISTINCT )?f\b", re.IGNORECASE)


def listed(answer: Answer) -> Answer:
    """Return an answer whose texts are their letters in order, for GROUP_CONCAT may list equal values in any order."""
    rows = [
        tuple(
            value and bytes(sorted(folded(value.replace(b" ", b"")).replace(b" ", b"")))
            for value in row
        )
        for row in answer.rows
    ]
    return Answer(answer.columns, rows, answer.error)


def order_difference(
    mine: Answer, theirs: Answer, keys: list[int], *, sums_floats: bool
) -> str:
    """Say where the values of the sort keys come in another order.

    sums_floats: their last digits, which may be hidden, are up to the plan, and so is any order behind them.
    """
    for place in keys:
        left = [row[place] for row in mine.rows]
        right = [row[place] for row in theirs.rows]
        for row, (ours, other) in enumerate(zip(left, right, strict=True)):
            if ours != other and not (ours and other and _same(ours, other)):
                return f"column {place} of row {row} is {ours!r} instead of {other!r}"
        if sums_floats and (nearly_ties(mine, place) or nearly_ties(theirs, place)):
            break
    return ""


def nearly_ties(answer: Answer, place: int) -> bool:
    """True where neighbours are the same in a column of floats but for the last digits."""
    values = [row[place] for row in answer.rows]
    is_near = any(one and other and _is_near(one, other) for one, other in pairwise(values))
    return is_near and answer.columns[place].type in FLOATS


def _same(ours: bytes, other: bytes) -> bool:
    return _is_near(ours, other) or folded(ours) == folded(other)


def _is_near(one: bytes, other: bytes) -> bool:
    try:
        return abs(float(one) - float(other)) <= 1e-9 * max(1.0, abs(float(other)))
    except ValueError:
        return False


def answers_wrongly(sql: str) -> bool:
    """True where MariaDB's own answer may be wrong.

    Grouping rows that it has sorted, it takes the NULL of a decimal expression for the value
    before it: of 4, -3 and NULL, `SELECT a / 2, COUNT(DISTINCT id) … GROUP BY a / 2 ORDER BY a / 2
    DESC` makes two groups (MariaDB 10.11).

    It also takes the largest BIGINT UNSIGNED for -1 where it makes a float of MAX(u): `MAX(u) * 1.5e0`
    is -1.5, with groups in such a plan, without them in any. BIT_OR(a) of -3 is -3 there, and not what it shows.
    """
    if "BIT_" in sql and re.search(r"\bm0 \+ m1\b|1\.5e0", sql):
        return True
    if re.search(r"M(AX|IN)\(u\)", sql) and re.search(r"\(DISTINCT |1\.5e0", sql):
        return True
    is_sorted_first = re.search(r"(\(DISTINCT |GROUP_CONCAT\().* GROUP BY ", sql)
    return bool(is_sorted_first and re.search(r" / 2|ROUND\(", sql))
