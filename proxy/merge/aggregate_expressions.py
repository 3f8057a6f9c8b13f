"""Expressions of aggregates, which a shard computes from the merged values.

Only a server knows the value, the digits and the collation of `SUM(a) / COUNT(*)` or `CONCAT(MAX(s), '!')`.
So the groups are merged first, with all operands of the expressions. Then a
shard gets these values as a `stage`, and computes the client's own text:

    SELECT …, (c1 / c2) FROM (SELECT c1, c2 FROM JSON_TABLE(…)) AS d

The result must have the same type as in the client's statement; else the answer is refused. An expression of an AVG is refused too: servers
compute with more of its digits than they show; how many depends on the plan. The rows themselves may give it (`routes.Merge.otherwise`).
"""

from __future__ import annotations

from collections.abc import Sequence
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
# A text, with the numbers of outputs in place of their values.
Pieces = list[bytes | int]

_NUMBER: Final = b"`streamfrom:n`"


class Computation:
    """The expressions of one statement, and their operands.

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
        self._exact = {
            place
            for place in self._pieces
            if exact and place < grouping.width and loses_digits(definitions[place])
        }
        self._columns: Sequence[ColumnDefinition] = ()
        self._collations: list[str] = []
        for place in self._pieces:
            if any(self._calls(each) == "AVG" for each in self._within(place)):
                raise self._refused(
                    "an AVG has more digits than it shows, SUM(x) / COUNT(x) has not", place
                )

    # --- before the groups are known ----------------------------------------------------------

    def trial(self) -> bytes:
        """Return the query whose definitions are those of the values and of the expressions."""
        columns = [_NUMBER, *map(_name, self._operands), *self._expressions()]
        return b"SELECT %b FROM %b" % (b", ".join(columns), self._derived())

    def ask_collations(self) -> bytes:
        """Return the query whose one row is the collations of the values."""
        names = b", ".join(b"COLLATION(MAX(%b))" % _name(place) for place in self._operands)
        return b"SELECT %b FROM %b" % (names, self._derived())

    def tried(self, columns: Sequence[ColumnDefinition], collations: Values) -> None:
        """Take the definitions of the `trial` and the values' collations. Raises Unsupported."""
        self._columns = columns
        self._collations = [(each or b"").decode() for each in collations]
        operands = dict(zip(self._operands, columns[1:], strict=False))
        for place in self._pieces:
            reason = self._fault(place, operands)
            if reason:
                raise self._refused(reason, place)

    def _fault(self, place: int, operands: dict[int, ColumnDefinition]) -> str:
        """Return why a shard may compute another result from the values of *operands* than one server does; "" if it does not."""
        output, column, within = self._outputs[place], self.type_of(place), self._within(place)
        form = b"".join(each for each in self._pieces[place] if isinstance(each, bytes))
        is_shown = place < self._grouping.width
        sums_floats = any(
            sort_of(operands[each]) is Sort.DOUBLE and self._calls(each) == "SUM"
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
            and bool(self._grouping.conditions),
            # The same text is two instants when clocks are set back.
            "UNIX_TIMESTAMP of an aggregate": has_instant and b"UNIX_TIMESTAMP" in form.upper(),
            # The last digits of a sum of floats depend on their order.
            "text or a decision made of a sum of floats": sums_floats
            and sort_of(column) is not Sort.DOUBLE,
            # The context decides how a server rounds before it compares or computes further.
            "servers round before or after they go on": b"/" in form
            and (output.is_condition or uses_other),
        }
        return next((reason for reason, holds in faults.items() if holds), "")

    def type_of(self, place: int) -> ColumnDefinition:
        """Return the definition of the expression's value, as the shard reports it."""
        return self._columns[1 + len(self._operands) + list(self._pieces).index(place)]

    # --- groups ---------------------------------------------------------------------------------

    def question(self, groups: Sequence[Values]) -> bytes:
        """Return the query that computes *groups*, each given as the values of all its outputs."""
        columns = self._columns[: 1 + len(self._operands)]
        stage = Stage(columns, ["", *self._collations])
        rows = [
            text_row([b"%d" % number, *(group[place] for place in self._operands)])
            for number, group in enumerate(groups)
        ]
        items = b", ".join([_NUMBER, *self._expressions()])
        return b"SELECT %b FROM (%b) AS `streamfrom`" % (items, stage.select(rows))

    def answer(
        self, columns: Sequence[ColumnDefinition], rows: Sequence[bytes]
    ) -> list[dict[int, bytes | None]]:
        """Return, for each group of a `question`, the computed values by output. Raises Unsupported."""
        if not all(map(are_alike, columns[1:], self._columns[1 + len(self._operands) :])):
            raise self._refused("a shard computes it with other types", *self._pieces)
        found: dict[int, dict[int, bytes | None]] = {}
        for row in rows:
            number, *values = parse_text_row(row)
            found[int(number or 0)] = dict(zip(self._pieces, values, strict=True))
        return [found[number] for number in range(len(found))]

    def refused(self) -> Unsupported:
        """Return the error for expressions that a shard cannot compute from values."""
        return self._refused("a shard cannot compute it from merged values", *self._pieces)

    def _refused(self, reason: str, *places: int) -> Unsupported:
        texts = b", ".join(self._outputs[place].text for place in places)
        return Unsupported.computing(texts, reason)

    # --- texts ------------------------------------------------------------------------------------

    def _expressions(self) -> list[bytes]:
        return list(map(self._expression, self._pieces))

    def _derived(self) -> bytes:
        """Return a derived table that has the values' columns and no row."""
        texts = self._texts
        columns = [b"0 AS %b" % _NUMBER]
        columns += [
            b"%b AS %b" % (self._outputs[place].text, _name(place)) for place in self._operands
        ]
        empty = [b"SELECT", b", ".join(columns), texts.at(texts.select.source), b"WHERE 1=0"]
        groups = [group.text for group in self._grouping.groups]
        if groups:
            empty += [b"GROUP BY", b", ".join(groups)]
        empty.append(b"HAVING 1=0")
        return b"(%b) AS `streamfrom`" % b" ".join(empty)

    def _expression(self, place: int) -> bytes:
        text = b"(%b)" % b"".join(
            piece if isinstance(piece, bytes) else _name(piece) for piece in self._pieces[place]
        )
        if self._outputs[place].is_condition:
            return text + b" IS TRUE"
        return exactly(text) if place in self._exact else text

    def _taken_apart(self, place: int) -> Pieces:
        """Return an expression's text, with output numbers for the values that the merge knows."""
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

    def _calls(self, place: int) -> str:
        call = self._outputs[place].call
        return "" if call is None else call.function


def _name(place: int) -> bytes:
    return b"`streamfrom:%d`" % place


def _is_whole(column: ColumnDefinition, collation: str) -> bool:
    """Return whether servers compute with a stage's column as with the aggregate that it represents."""
    if column.type == FieldType.YEAR:
        return False  # a stage's column would be a date, but the aggregate is a number
    try:
        Stage([column], [collation])
    except Unsupported:
        return False
    return True
