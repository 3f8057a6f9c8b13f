"""What servers compute from an AVG inside of an expression, by the expression's form.

A server keeps an average with more digits than it shows, some nine after the point, and computes with
all of them (https://dev.mysql.com/doc/refman/8.4/en/precision-math-expressions.html says
that values are not rounded, but MySQL 9 rounds the result of each function to the digits that its type
has, and both servers round an average that has been through a temporary table). So only forms with
one operation on the average are known: `AVG(a) * 100`, `COALESCE(AVG(a), 0)`, and whatever is made of
`ROUND(AVG(a), 2)`.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final


AVERAGE: Final = b"\0"  # in the place of an AVG
OTHER: Final = b"\1"  # in the place of another operand

# An operand: an average, another one, or a number.
_VALUE = rb"(?:[\x00\x01]|-?[0-9]+(?:\.[0-9]*)?)"
# ROUND to four digits at most, which is as many as are shown of an average of integers.
_ROUNDED: Final = re.compile(rb"\bROUND\( ?\x00 ?(?:, ?[0-4] ?)?\)", re.IGNORECASE)
# One operation, whose result has all digits on both servers: a + - *, COALESCE, IFNULL or ABS.
_ONE_STEP: Final = re.compile(
    rb"%b ?[-+*] ?%b|(?:COALESCE|IFNULL)\( ?%b ?(?:, ?%b ?)*\)|ABS\( ?\x00 ?\)"
    % (_VALUE, _VALUE, _VALUE, _VALUE),
    re.IGNORECASE,
)
# MySQL rounds between the two, MariaDB does not.
_ROUNDED_LATER: Final = re.compile(
    rb"ROUND\( ?(?:COALESCE|IFNULL)\( ?%b ?(?:, ?%b ?)*\) ?(?:, ?[0-4] ?)?\)"
    % (_VALUE, _VALUE),
    re.IGNORECASE,
)
# Of a quotient, and of an average with its point moved, what ROUND leaves is the same whether a server
# computes with the digits that are shown, with all of them, or rounds in between, unless the first
# two differ: the numbers where ROUND decides have few enough digits to be averages that are shown.
_SCALED: Final = re.compile(
    rb"ROUND\( ?(?:\x00 ?/ ?[1-9][0-9]{0,3} ?(?:, ?[0-3] ?)?"
    rb"|(?:\x00 ?\* ?10|10 ?\* ?\x00) ?(?:, ?[0-2] ?)?"
    rb"|(?:\x00 ?\* ?100|100 ?\* ?\x00) ?(?:, ?[01] ?)?)\)",
    re.IGNORECASE,
)
# An average that becomes a text has the digits that are shown.
_SPELT: Final = re.compile(
    rb"CAST\( ?\x00 AS CHAR ?\)|CONCAT\( ?\x00[^()\x00]*\)", re.IGNORECASE
)
# Comparisons, IF and CASE: all words of them, in any order.
_COMPARED: Final = re.compile(
    rb"(?:[\s(),=<>!]|%b|'[^'\\]*'"
    rb"|\b(?:IF|CASE|WHEN|THEN|ELSE|END|AND|OR|NOT|IS|NULL|BETWEEN|IN)\b)*" % _VALUE,
    re.IGNORECASE,
)


class Use(Enum):
    """Which digits of its averages an expression is computed from."""

    ALL = auto()
    ROUNDED = auto()  # all, and never more than ROUND leaves come out
    SHOWN = auto()
    EITHER = auto()  # all or the shown ones
    UNKNOWN = auto()


def use_of(expression: bytes) -> Use:
    """Return what is known of an expression, in which AVERAGE and OTHER stand for its operands."""
    text = b" ".join(expression.split())
    if AVERAGE not in _ROUNDED.sub(OTHER, text):
        return Use.ROUNDED
    if _ONE_STEP.fullmatch(text):
        return Use.ALL
    if _SPELT.fullmatch(text):
        return Use.SHOWN
    is_either = any(each.fullmatch(text) for each in (_ROUNDED_LATER, _SCALED, _COMPARED))
    return Use.EITHER if is_either else Use.UNKNOWN
