"""What servers compute from an AVG inside of an expression, by the expression's form.

An average has more digits than are shown of it, some nine behind the point. It is used with all of
them where it stands (https://dev.mysql.com/doc/refman/8.4/en/precision-math-expressions.html says
that values are not rounded, but MySQL 9 rounds the result of each function to the digits that its type
has, and both servers round an average that has been through a temporary table). So only forms that
do one thing with it are known: `AVG(a) * 100`, `COALESCE(AVG(a), 0)`, and whatever is made of
`ROUND(AVG(a), 2)`.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final


AVERAGE: Final = b"\0"  # in the place of an AVG
OTHER: Final = b"\1"  # in the place of another operand

_VALUE = rb"(?:[\x00\x01]|-?[0-9]+(?:\.[0-9]*)?)"
_ROUNDED: Final = re.compile(rb"\bROUND\( ?\x00 ?(?:, ?[0-4] ?)?\)", re.IGNORECASE)
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
_SPELT: Final = re.compile(
    rb"CAST\( ?\x00 AS CHAR ?\)|CONCAT\( ?\x00[^()\x00]*\)", re.IGNORECASE
)
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
    is_either = _ROUNDED_LATER.fullmatch(text) or _COMPARED.fullmatch(text)
    return Use.EITHER if is_either else Use.UNKNOWN
