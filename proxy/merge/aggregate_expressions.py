"""Expressions of aggregates, which a shard computes from the values that the merge has found.

What `SUM(a) / COUNT(*)` or `CONCAT(MAX(s), '!')` is worth, its digits and its collation, is the
server's affair. So the groups are merged first, with all that the expressions are made of; then a
shard is given these values as a `stage`, and computes the client's own text:

    SELECT …, (c1 / c2) FROM (SELECT c1, c2 FROM JSON_TABLE(…)) AS d

What is computed must have the type that it has in the client's statement; else the answer is refused.

An AVG is the one value that is more than what can be seen of it (`is_sure`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.merge.comparison import Sort, are_alike, exactly, loses_digits, sort_of
from streamfrom.proxy.merge.stage import Stage
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, parse_text_row, text_row
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from streamfrom.proxy.merge.group_by import Grouping
    from streamfrom.proxy.merge.shard_texts import Texts


Values = list[bytes | None]
# A text with the numbers of outputs where their values are wanted.
Pieces = list[bytes | int]

_SUMS: Final = frozenset({"SUM", "AVG"})
_DECIMAL_WIDTH: Final = 67  # of 65 digits, a sign and a point
_NUMBER: Final = b"`streamfrom:n`"
_DIGITS: Final = Context(prec=130)  # more than any DECIMAL has


class Computation:
    """The expressions of one statement, and what they are computed from.

    definitions: the column definitions of the answer.
    exact: the texts must keep all digits.
    """

    def __init__(
        self,
        texts: Texts,
        grouping: Grouping,
        definitions: Sequence[ColumnDefinition],
        *,
        exact: bool,
    ) -> None:
        self._texts = texts
        self._grouping = grouping
        self._outputs = outputs = grouping.outputs
        self._wanted = definitions
        self._pieces = {
            place: self._taken_apart(place)
            for place, output in enumerate(outputs)
            if output.operands
        }
        self._operands = list(
            dict.fromkeys(
                piece
                for pieces in self._pieces.values()
                for piece in pieces
                if isinstance(piece, int)
            )
        )
        # The outputs whose values stand once more after a group's, with all their digits.
        self.averages = [place for place in self._operands if self._calls(place) == "AVG"]
        averages = set(self.averages)
        # Computed a second time, with all digits of the averages.
        self._twice = [place for place in self._pieces if averages & self._within(place)]
        self._exact = {
            place
            for place in self._pieces
            if exact and place < grouping.width and loses_digits(definitions[place])
        }
        self._columns: Sequence[ColumnDefinition] = ()
        self._collations: list[str] = []

    # --- before the groups are known ----------------------------------------------------------

    def trial(self) -> bytes:
        """Return the query whose definitions are those of the values and of what is computed."""
        columns = [_NUMBER, *map(_name, self._operands), *map(_precise, self.averages)]
        columns += self._expressions()
        return b"SELECT %b FROM %b" % (b", ".join(columns), self._derived())

    def ask_collations(self) -> bytes:
        """Return the query whose one row is the collations of the values."""
        names = b", ".join(b"COLLATION(MAX(%b))" % _name(place) for place in self._operands)
        return b"SELECT %b FROM %b" % (names, self._derived())

    def tried(self, columns: Sequence[ColumnDefinition], collations: Values) -> None:
        """Learn the definitions of the `trial` and the values' collations. Raises Unsupported."""
        self._columns = columns
        self._collations = [(each or b"").decode() for each in collations]
        operands = dict(zip(self._operands, columns[1:], strict=False))
        for place in self._pieces:
            reason = self._fault(place, operands)
            if reason:
                raise self._refused(reason, place)

    def _fault(self, place: int, operands: dict[int, ColumnDefinition]) -> str:
        """Return why a shard may compute something else of the values of *operands* than one server does; "" if it does not."""
        output, column, form = self._outputs[place], self.type_of(place), self._form(place)
        within, grouping = self._within(place), self._grouping
        is_shown = place < grouping.width
        is_quotient = b"/" in form
        sums_floats = any(
            sort_of(operands[each]) is Sort.DOUBLE and self._calls(each) in _SUMS
            for each in within
        )
        collations = dict(zip(self._operands, self._collations, strict=True))
        is_whole = all(_is_whole(operands[each], collations[each]) for each in within)
        has_instant = any(operands[each].type == FieldType.TIMESTAMP for each in within)
        uses_other = any(operand in self._pieces for _, operand in output.operands)
        faults = {
            "the texts of its values do not have all of them": not is_whole,
            "a shard gives it another type": is_shown
            and not (are_alike(column, self._wanted[place]) or place in self._exact),
            # MariaDB finds no group HAVING NULLIF(COUNT(*), 1) > 1; MySQL does.
            "HAVING with NULLIF of an aggregate": b"NULLIF" in form.upper()
            and bool(grouping.conditions),
            # The same text is two instants where clocks are set back.
            "UNIX_TIMESTAMP of an aggregate": has_instant and b"UNIX_TIMESTAMP" in form.upper(),
            # A sum of floats depends on their order, in its last digits.
            "text or a decision made of a sum of floats": sums_floats
            and sort_of(column) is not Sort.DOUBLE,
            "servers compute it with other digits of an AVG": place in self._twice
            and not is_sure(form),
            # How a server rounds before it compares or goes on is up to where these stand.
            "servers round before or after they go on": (is_quotient and output.is_condition)
            or ((is_quotient or place in self._twice) and uses_other),
        }
        return next((reason for reason, holds in faults.items() if holds), "")

    def type_of(self, place: int) -> ColumnDefinition:
        """Return the definition of what is computed, as the shard sees it."""
        skipped = 1 + len(self._operands) + len(self.averages)
        return self._columns[skipped + list(self._pieces).index(place)]

    # --- groups ---------------------------------------------------------------------------------

    def question(self, groups: Sequence[Values]) -> bytes:
        """Return the query that computes *groups*: values of all outputs, then of `averages`."""
        sent = [
            [group[place] for place in self._operands] + group[len(self._outputs) :]
            for group in groups
        ]
        count = 1 + len(self._operands)
        columns = [*self._columns[:count]]
        for place, column in enumerate(self._columns[count : count + len(self.averages)]):
            texts = [values[count - 1 + place] or b"" for values in sent]
            decimals = max(len(text.partition(b".")[2]) for text in texts)
            is_decimal = sort_of(column) is Sort.DECIMAL
            columns.append(
                replace(column, length=_DECIMAL_WIDTH, decimals=decimals)
                if is_decimal
                else column
            )
        stage = Stage(columns, ["", *self._collations, *[""] * len(self.averages)])
        rows = [text_row([b"%d" % number, *values]) for number, values in enumerate(sent)]
        items = b", ".join([_NUMBER, *self._expressions()])
        return b"SELECT %b FROM (%b) AS `streamfrom`" % (items, stage.select(rows))

    def answer(
        self, columns: Sequence[ColumnDefinition], rows: Sequence[bytes]
    ) -> list[dict[int, bytes | None]]:
        """Return, for each group of a `question`, what was computed, by output. Raises Unsupported where servers may not agree."""
        first = len(self._columns) - len(self._pieces) - len(self._twice)
        own = self._columns[first : first + len(self._pieces)]
        if not all(map(are_alike, columns[1:], own)):
            raise self._refused("a shard computes it with other types", *self._pieces)
        found: dict[int, dict[int, bytes | None]] = {}
        for row in rows:
            number, *values = parse_text_row(row)
            computed = dict(zip(self._pieces, values, strict=False))
            for place, text in zip(self._twice, values[len(computed) :], strict=True):
                computed[place] = self._settled(place, computed[place], text)
            found[int(number or 0)] = computed
        return [found[number] for number in range(len(found))]

    def _settled(self, place: int, shown: bytes | None, precise: bytes | None) -> bytes | None:
        """Return the value of an expression with an AVG. Raises Unsupported where servers may not agree.

        shown: computed from the digits that are shown of the AVG. precise: from all of them.
        """
        column = self.type_of(place)
        if precise is not None and sort_of(column) is Sort.DECIMAL:
            value = Decimal(precise.decode())
            rounded = value.quantize(
                Decimal(1).scaleb(-column.decimals), ROUND_HALF_UP, _DIGITS
            )
            precise = f"{rounded:f}".encode()
        is_one_step = _ONE_STEP.fullmatch(_in_a_line(self._form(place)))
        if precise != shown and not (is_one_step and self._is_direct()):
            raise self._refused("an AVG whose last digits decide", place)
        return precise

    def _is_direct(self) -> bool:
        """Whether no server puts an AVG into a temporary table before it computes with it."""
        grouping = self._grouping
        if not grouping.groups:
            return True
        places = [place for place, _ in grouping.order]
        return (
            not grouping.final_order
            and not self._texts.options()
            and places == sorted(places)
            and len({down for _, down in grouping.order}) == 1
        )

    def refused(self) -> Unsupported:
        """Return the error for expressions that a shard cannot compute from values."""
        return self._refused("a shard cannot compute it from merged values", *self._pieces)

    def _refused(self, reason: str, *places: int) -> Unsupported:
        texts = b", ".join(self._outputs[place].text for place in places)
        return Unsupported.computing(texts, reason)

    # --- texts ------------------------------------------------------------------------------------

    def _expressions(self) -> list[bytes]:
        return [
            *map(self._expression, self._pieces),
            *(self._expression(place, self.averages) for place in self._twice),
        ]

    def _derived(self) -> bytes:
        """Return a derived table that has the values' columns and no row."""
        texts = self._texts
        columns = [b"0 AS %b" % _NUMBER]
        columns += [
            b"%b AS %b" % (self._outputs[place].text, name(place))
            for name, places in ((_name, self._operands), (_precise, self.averages))
            for place in places
        ]
        empty = [b"SELECT", b", ".join(columns), texts.at(texts.select.source), b"WHERE 1=0"]
        groups = [group.text for group in self._grouping.groups]
        if groups:
            empty += [b"GROUP BY", b", ".join(groups)]
        empty.append(b"HAVING 1=0")
        return b"(%b) AS `streamfrom`" % b" ".join(empty)

    def _expression(self, place: int, averages: Sequence[int] = ()) -> bytes:
        text = b"(%b)" % b"".join(
            piece
            if isinstance(piece, bytes)
            else (_precise if piece in averages else _name)(piece)
            for piece in self._pieces[place]
        )
        if self._outputs[place].is_condition:
            return text + b" IS TRUE"
        return exactly(text) if place in self._exact else text

    def _taken_apart(self, place: int) -> Pieces:
        """Return an expression's text, in which the values that the merge knows are numbers."""
        output = self._outputs[place]
        start, end = output.span
        found: Pieces = []
        for span, operand in output.operands:
            found.append(self._texts.at((start, span[0])))
            if self._outputs[operand].operands:
                found += [b"(", *self._taken_apart(operand), b")"]
            else:
                found.append(operand)
            start = span[1]
        return [*found, self._texts.at((start, end)) + output.tail]

    def _within(self, place: int) -> set[int]:
        return {piece for piece in self._pieces[place] if isinstance(piece, int)}

    def _form(self, place: int) -> bytes:
        """Return an expression as `averages` reads it."""
        return b"".join(
            piece
            if isinstance(piece, bytes)
            else (AVERAGE if self._calls(piece) == "AVG" else OTHER)
            for piece in self._pieces[place]
        )

    def _calls(self, place: int) -> str:
        call = self._outputs[place].call
        return "" if call is None else call.function


def _name(place: int) -> bytes:
    return b"`streamfrom:%d`" % place


def _precise(place: int) -> bytes:
    return b"`streamfrom:%d+`" % place


def _is_whole(column: ColumnDefinition, collation: str) -> bool:
    """Whether servers compute with a stage's column as with the aggregate that it stands for."""
    if column.type == FieldType.YEAR:
        return False  # a column of it makes dates, and an aggregate is a number
    try:
        Stage([column], [collation])
    except Unsupported:
        return False
    return True


# --- what servers compute from an AVG inside of an expression, by the expression's form ------------

# A server keeps an average with more digits than it shows, some nine after the point. It computes with all of them, or with those that are
# shown where the average has been through a temporary table; MySQL also rounds the result of each function to the digits of its type. So an
# expression is computed both ways, and known where both agree; but for many operations, of which some server has yet another value. Of one
# operation without a temporary table all digits decide: `AVG(a) * 100` is known for any rows.

AVERAGE: Final = b"\0"  # in the place of an AVG
OTHER: Final = b"\1"  # in the place of another operand

# An operand: an average, another one, or a number.
_VALUE = rb"(?:[\x00\x01]|-?[0-9]+(?:\.[0-9]*)?)"
_COALESCE = rb"(?:COALESCE|IFNULL)\( ?%b ?(?:, ?%b ?)*\)" % (_VALUE, _VALUE)
# One operation: a + - *, COALESCE, IFNULL or ABS.
_ONE_STEP: Final = re.compile(
    rb"%b ?[-+*] ?%b|%b|ABS\( ?\x00 ?\)" % (_VALUE, _VALUE, _COALESCE), re.IGNORECASE
)
# ROUND to four digits at most, which is as many as are shown of an average of integers. MySQL rounds COALESCE before it, MariaDB
# does not.
_ROUNDED: Final = re.compile(
    rb"\bROUND\( ?(?:\x00|%b) ?(?:, ?[0-4] ?)?\)" % _COALESCE, re.IGNORECASE
)
# Comparisons, IF and CASE: all words of them, in any order.
_COMPARED: Final = re.compile(
    rb"(?:[\s(),=<>!]|%b|'[^'\\]*'"
    rb"|\b(?:IF|CASE|WHEN|THEN|ELSE|END|AND|OR|NOT|IS|NULL|BETWEEN|IN)\b)*" % _VALUE,
    re.IGNORECASE,
)


def is_sure(expression: bytes) -> bool:
    """Whether no server makes another value of an expression than all or the shown digits of its averages do.

    AVERAGE and OTHER stand for its operands.
    """
    rest = _ROUNDED.sub(OTHER, _in_a_line(expression))
    return AVERAGE not in rest or any(each.fullmatch(rest) for each in (_ONE_STEP, _COMPARED))


def _in_a_line(expression: bytes) -> bytes:
    return b" ".join(expression.split())
