"""Where a statement sets or compares a time column of a message table with a moment, or with what is none.

A time column holds nanoseconds since 1970; a server compares it with `NOW()` as the number
20261122150345, a moment of 1970, and says nothing. So what is a moment and stands next to a time
column is found here, to become nanoseconds, and what cannot become any is refused.

Each term (see `times.Terms`) comes to a list of *values* that are compared, assigned or chosen from
alike: its operands, with parentheses, COALESCE, IF, CASE and the like opened. The rule is:

* where one of the values is a time column, moments among them become nanoseconds, and literals
  must be numbers of nanoseconds;
* a time column and a time function that stand in one term otherwise are refused, unless the
  function counts (as UNIX_TIMESTAMP does), and factors bring both to the same unit.

What is no column of a message table by its name (a view's, a derived table's, a variable) is not
seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.sqlparse_ext.reading.queries import insert_parts
from streamfrom.sqlparse_ext.statements import InsertSource, ListSlot, Param, Slot
from streamfrom.sqlparse_ext.text.tokens import QUERY_WORDS, Cursor, Token, unquote
from streamfrom.sqlparse_ext.writes.times import (
    BORDERS,
    CLOSE,
    COMPARISONS,
    LITERAL_WORDS,
    NO_MOMENTS,
    PREFIXES,
    SECOND_NS,
    TIME_FUNCTIONS,
    TIME_WORDS,
    UNIT_NS,
    Beside,
    LiteralSum,
    Mixture,
    MomentPlan,
    PlacedMoment,
    Terms,
    TimeColumns,
    read_duration,
    read_moment,
)


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.writes.times import Moment

# Of these the value is one of the arguments (for IF, but the first).
_CHOICES: Final = frozenset({
    "COALESCE", "IFNULL", "NULLIF", "GREATEST", "LEAST", "MIN", "MAX", "ANY_VALUE", "IF", "VALUES", "VALUE", "NVL",
})  # fmt: skip
# By the borders of their parts, whether these are among the values; "" stands before the first part.
_OF_LIST: Final = {"": True}
_OF_IF: Final = {",": True}
_OF_CASE: Final = {"WHEN": False, "THEN": True, "ELSE": True}
# A word behind a column, or before one, that is no name.
_NO_ALIASES: Final = BORDERS | COMPARISONS | PREFIXES | frozenset({
    "DIV", "MOD", "COLLATE", "END", "CASE", "NULL", "TRUE", "FALSE", "KEY", "INTERVAL", "EXISTS", "UNKNOWN", "ESCAPE",
    "OVER", "PARTITION", "ROWS", "RANGE", "REPLACE", "LOW_PRIORITY", "QUICK", "DELAYED", "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT", "SQL_BUFFER_RESULT", "OUTER",
    # Types of CAST.
    "SIGNED", "UNSIGNED", "INTEGER", "INT", "BIGINT", "DECIMAL", "CHAR", "DOUBLE", "FLOAT", "REAL", "JSON", "NCHAR",
})  # fmt: skip
_BOOLEAN: Final = frozenset({"EXISTS", "ISNULL"})
_SIGNS: Final = frozenset({"+", "-"})
# Deeper statements, and terms with more pairs, are not looked into: they are refused.
_DEPTH_MAX: Final = 60
_PAIRS_MAX: Final = 64


class _Place(NamedTuple):
    """What stands in tokens[start:end]: a time column, or a time function, and its name."""

    name: str
    start: int
    end: int
    is_column: bool = False


class _Value(NamedTuple):
    """One of the values of a term."""

    places: tuple[_Place, ...] = ()  # the time columns and time functions in the value
    # The value is a time column, plus or minus the durations in *moments*.
    is_column: bool = False
    # What becomes nanoseconds next to a time column: the value itself, or these durations.
    moments: tuple[PlacedMoment, ...] = ()
    # The literal or parameter that must be nanoseconds next to a time column.
    operand: Slot | Param | ListSlot | None = None
    # The literals, multiplied and added, whose sum must be nanoseconds next to a time column.
    terms: tuple[tuple[int, tuple[Slot, ...]], ...] = ()


class MomentReader:
    """Reads one template."""

    def __init__(self, tokens: list[Token], template: bytes, columns: TimeColumns) -> None:
        self._tokens = tokens
        self._template = template
        self._names = columns.names
        self._foreign = columns.foreign
        self._target = columns.target
        self._is_set_read = True
        self._terms = Terms(tokens)
        self._hidden: set[str] = set()  # names of time columns that mean something else too
        self._stamps: set[str] = set()  # the aliases of time functions
        self._moments: list[PlacedMoment] = []
        self._kept_names: list[tuple[int, int]] = []
        self._literals: list[Beside] = []
        self._sums: list[LiteralSum] = []
        self._mixtures: list[Mixture] = []

    def plan(self) -> MomentPlan:
        """Return what is to be done about a statement."""
        cursor = Cursor(self._tokens, self._template)
        parts = insert_parts(cursor) if cursor.accept_any({"INSERT", "REPLACE"}) else None
        start = behind = 0  # what an INSERT gives values by their places
        assigned: tuple[str, ...] = ()
        if parts is not None and parts.source is InsertSource.VALUES:
            start, behind = parts.source_at  # not read: a template does not have all rows
        elif parts is not None and parts.source is InsertSource.SELECT and self._target:
            start, behind = parts.source_at
            assigned = parts.columns or self._target
        # The SET of an INSERT into another table is that table's.
        self._is_set_read = parts is None or bool(self._target)
        if not assigned and not any(self._column_name(token) for token in self._tokens):
            return NO_MOMENTS
        if self._is_readable():
            self._find_aliases()
            self._read(0, start)
            if assigned:
                self._assigned(start, behind, assigned)
            self._query(behind, len(self._tokens), is_outermost=True)
        return self._result()

    def plan_of_value(self, column: str) -> MomentPlan:
        """Return what is to be done about all the tokens, the value of *column*."""
        if self._is_readable():
            self._term(0, len(self._tokens), column)
        return self._result()

    def _result(self) -> MomentPlan:
        plan = MomentPlan(
            tuple(self._moments),
            tuple(self._kept_names),
            tuple(self._literals),
            tuple(self._sums),
            tuple(self._mixtures),
        )
        return plan if any(plan) else NO_MOMENTS

    def _is_readable(self) -> bool:
        """Whether groups are closed and not too deep; else a time function is refused."""
        depth = self._terms.depth
        if depth is not None and depth <= _DEPTH_MAX:
            return True
        for place, token in enumerate(self._tokens):
            if self._is_time(place):
                self._mixtures.append(Mixture(min(self._names), token.key))
                break
        return False

    # --- names --------------------------------------------------------------------------------

    def _name(self, token: Token) -> str:
        return unquote(token, self._template).lower()

    def _column_name(self, token: Token) -> str:
        """Return the name of a time column, "" where the token is none."""
        name = self._name(token) if token.is_name else ""
        return name if name in self._names else ""

    def _find_aliases(self) -> None:
        """Note which names mean time columns, time functions, or not what they seem to."""
        aliases: set[str] = set()
        is_stamp = False  # a time function stands in the expression so far
        for place in range(1, len(self._tokens)):
            token, before = self._tokens[place], self._tokens[place - 1]
            if token.key in (",", "SELECT", "FROM", "WHERE"):
                is_stamp = False
            elif self._is_time(place):
                is_stamp = True
            is_as = before.key == "AS"
            if (
                not token.is_name
                or self._terms.is_call(place, len(self._tokens))
                or token.key in _NO_ALIASES
            ):
                continue
            ends_value = before.slot is not None or before.is_name or before.key == ")"
            if not is_as and (not ends_value or before.key in _NO_ALIASES - {"END"}):
                continue
            name = self._name(token)
            source = self._column_name(self._tokens[place - 2] if is_as else before)
            if is_stamp and (is_as or before.key == ")"):
                self._stamps.add(name)
            if source and name != source:
                aliases.add(name)
            elif name in self._names and not source:
                self._hidden.add(name)
        # What is another name of a time column is refused next to a moment, and not translated:
        # elsewhere in the statement it may mean a column of its own.
        self._hidden |= aliases
        self._names |= aliases

    def _is_time(self, place: int) -> bool:
        """Whether a time function stands here, a word that is one, or a literal of a date."""
        key = self._terms.key(place)
        if key in TIME_FUNCTIONS and self._terms.key(place + 1) == "(":
            return True
        if key in LITERAL_WORDS and place + 1 < len(self._tokens):
            return self._tokens[place + 1].slot is not None or key in TIME_WORDS
        return key in TIME_WORDS or (key[:2] == "@@" and key.lower().endswith("timestamp"))

    # --- from the statement to its values -----------------------------------------------------

    def _read(self, start: int, end: int) -> list[_Place]:
        """Read all terms of a range; return what their values are made of."""
        terms = self._terms.cut(start, end)
        return [place for term in terms for place in self._term(term.start, term.end)]

    def _query(self, start: int, end: int, *, is_outermost: bool = False) -> list[_Place]:
        """Read a query; return what its columns are made of. The outermost keeps their names."""
        found: list[_Place] = []
        in_list = in_set = False
        terms = self._terms.cut(start, end)
        for term, after in zip(terms, [*(term.border for term in terms[1:]), ""], strict=True):
            if term.border in ("SELECT", "FROM"):
                in_list = term.border == "SELECT"
            if term.border != ",":
                in_set = term.border in ("SET", "UPDATE") and self._is_set_read
            count = len(self._moments)
            places = self._term(term.start, term.end, is_assignment=in_set)
            if not in_list:
                continue
            found += places
            if is_outermost and len(self._moments) > count and term.border in ("SELECT", ","):
                last = self._tokens[term.end - 1]
                has_alias = last.is_name and self._moments[-1].end < last.start
                if after in ("", ",", "FROM", "WHERE", "LIMIT", "UNION") and not has_alias:
                    self._kept_names.append((self._tokens[term.start].start, last.end))
        return found

    def _assigned(self, start: int, end: int, target: tuple[str, ...]) -> None:
        """Read the query of an INSERT, whose columns *target* gets by their places."""
        while self._terms.is_group(start, end):
            start, end = start + 1, end - 1
        place, in_list, is_known = 0, False, True
        for term in self._terms.cut(start, end):
            if term.border == "SELECT":
                place, in_list, is_known = 0, True, True
            elif term.border == "FROM":
                in_list = False
            elif term.border == "," and in_list:
                place += 1
            is_value = in_list and term.border in ("SELECT", ",", "DISTINCT")
            if is_value and self._terms.key(term.end - 1) == "*":
                # A * gives an unknown number of columns, so the places behind it are unknown.
                is_known = False
            name = target[place] if is_value and is_known and place < len(target) else ""
            found = self._term(term.start, term.end, name if name in self._names else "")
            functions = [place for place in found if not place.is_column]
            if is_value and not is_known and functions:
                self._mixtures.append(Mixture(min(self._names), functions[0].name))

    def _term(
        self, start: int, end: int, column: str = "", *, is_assignment: bool = False
    ) -> list[_Place]:
        """Read a term, which *column* is set to, or an assignment; return what its value is made of.

        What is true or false is made of nothing.
        """
        operands = self._terms.operands(start, end)
        values: list[_Value] = []
        for comparison, first, last in operands:
            values += self._values(first, last, is_list=comparison == "IN")
        # One value next to the column.
        is_given = len(values) == 1 if column else is_assignment and len(values) == 2
        found = self._relate(values, column, is_given=is_given and len(operands) == len(values))
        return found if len(operands) == 1 else []

    def _values(self, start: int, end: int, *, is_list: bool = False) -> list[_Value]:
        """Return the values of an operand, which is one of them or all of them."""
        terms = self._terms
        # NOT and BINARY change a value, ALL and ANY choose one: none changes what it is made
        # of.
        while start < end and terms.key(start) in PREFIXES:
            start += 1
        while start < end and terms.key(end - 1) == "NOT":
            end -= 1
        if start >= end:
            return []
        name = terms.key(start)
        is_parenthesised = name == "(" and terms.is_group(start, end)
        is_query = is_parenthesised and terms.key(start + 1) in QUERY_WORDS
        if is_list and is_parenthesised and not is_query:
            return self._chosen(start + 1, end - 1)
        value = self._value(start, end)
        if value is not None:
            return [value]
        if name == "CASE" and terms.is_group(start, end):
            has_operand = terms.key(start + 1) != "WHEN"
            return self._chosen(start + 1, end - 1, _OF_CASE, compares=has_operand)
        if name in _CHOICES and terms.is_call(start, end) and terms.is_group(start + 1, end):
            return self._chosen(start + 2, end - 1, _OF_IF if name == "IF" else _OF_LIST)
        if is_parenthesised and not is_query:
            is_row = any(term.border == "," for term in terms.cut(start + 1, end - 1))
            if not is_row:
                return self._chosen(start + 1, end - 1)
        return [_Value(tuple(self._made_of(start, end)))]

    def _chosen(
        self,
        start: int,
        end: int,
        chooses: Mapping[str, bool] = _OF_LIST,
        *,
        compares: bool = False,
    ) -> list[_Value]:
        """Return the values of a list, of IF or of CASE, by the borders behind which they stand.

        compares: what is not chosen is compared with each other, as the operand of CASE is.
        """
        chosen: list[_Value] = []
        compared: list[_Value] = []
        is_chosen = False
        for border, first, last in self._terms.cut(start, end):
            is_chosen = chooses.get(border, is_chosen)
            if len(self._terms.operands(first, last)) == 1 and (is_chosen or compares):
                (chosen if is_chosen else compared).extend(self._values(first, last))
            else:
                self._term(first, last)
        self._relate(compared)
        return chosen

    # --- one value ----------------------------------------------------------------------------

    def _value(self, start: int, end: int) -> _Value | None:
        """Read what is a literal, a time column or a moment; it may have an alias."""
        slot = self._tokens[start].slot
        if end - start == 1 and slot is not None:
            return _Value(operand=slot)
        if terms := self._terms.literal_sum(start, end):
            return _Value(terms=terms)
        for last in (end, end - 1) if self._tokens[end - 1].is_name else (end,):
            if last == start:
                break
            if (column := self._column(start, last)) is not None:
                return column
            moment = read_moment(Cursor(self._tokens, self._template, start), last)
            if moment is not None:
                place = _Place(self._terms.key(start), start, last)
                return _Value((place,), moments=(self._placed(start, last, moment),))
        return None

    def _placed(
        self, start: int, end: int, moment: Moment, *, is_shift: bool = False
    ) -> PlacedMoment:
        ends = self._tokens[start].start, self._tokens[end - 1].end
        return PlacedMoment(*ends, moment, is_shift)

    def _column(self, start: int, end: int) -> _Value | None:
        """Read a time column, plus or minus intervals."""
        after = self._behind_name(start, end)
        place = self._named(start, after)
        if place is None or place.name in self._hidden:
            return None
        shifts: list[PlacedMoment] = []
        cursor = Cursor(self._tokens, self._template, after, end)
        while cursor.at < end:
            first = cursor.at + 1
            duration = read_duration(cursor) if cursor.accept_any(_SIGNS) else None
            if duration is None or cursor.at > end:
                return None
            shifts.append(self._placed(first, cursor.at, duration, is_shift=True))
        return _Value((place,), is_column=True, moments=tuple(shifts))

    def _behind_name(self, start: int, end: int) -> int:
        """Return the place behind `a.b.c` at *start*."""
        if not self._tokens[start].is_name:
            return start
        place = start + 1
        while place + 1 < end and self._terms.key(place) == ".":
            place += 2
        return place

    def _named(self, start: int, after: int) -> _Place | None:
        """Return the time column that the name tokens[start:after] means."""
        name = self._column_name(self._tokens[after - 1]) if after > start else ""
        if not name or self._terms.key(after) in ("(", "."):
            return None
        if after - start > 1 and self._name(self._tokens[after - 3]) in self._foreign:
            return None
        return _Place(name, start, after, is_column=True)

    def _made_of(self, start: int, end: int) -> list[_Place]:
        """Return what an expression of several is made of."""
        terms = self._terms
        found: list[_Place] = []
        place = start
        while place < end:
            key = terms.key(place)
            after = terms.behind(place)
            if key == "CASE":
                # The results of a CASE may be moments, its conditions never.
                found += self._term(place, after)
            elif key in CLOSE:
                is_query = terms.key(place + 1) in QUERY_WORDS
                read = self._query if is_query else self._read
                found += read(place + 1, after - 1)
            elif terms.is_call(place, end):
                after = terms.behind(place + 1)
                found += self._call(place, after)
            elif self._is_time(place):
                found.append(_Place(key, place, after))
            elif self._tokens[place].is_name:
                after = self._behind_name(place, end)
                column = self._named(place, after)
                last = self._tokens[after - 1]
                if column is not None:
                    found.append(column)
                elif self._name(last) in self._stamps:
                    found.append(_Place(last.key, place, after))
            place = after
        return found

    def _call(self, start: int, end: int) -> list[_Place]:
        """Return what `name(…)` is made of."""
        name = self._terms.key(start)
        if name in _CHOICES:
            return self._term(start, end)
        is_query = self._terms.key(start + 2) in QUERY_WORDS
        inner = (self._query if is_query else self._read)(start + 2, end - 1)
        if name in _BOOLEAN:
            return []
        # Any other function may hand its argument on, as ABS and COALESCE do.
        if name not in TIME_FUNCTIONS:
            return inner
        for place in inner[:_PAIRS_MAX]:
            if place.is_column:
                up, down = self._terms.scale(place.start, place.end, start + 1)
                unit_ns = SECOND_NS if name == "FROM_UNIXTIME" else 0
                self._mixtures.append(Mixture(place.name, name, down, up, unit_ns))
        return [_Place(name, start, end)]

    # --- what stands next to what --------------------------------------------------------------

    def _relate(
        self, values: list[_Value], column: str = "", *, is_given: bool = False
    ) -> list[_Place]:
        """Note what is to be done about *values*, which stand next to each other, and *column*.

        is_given: the column is given the one value next to it.
        Returns what they are made of, unless that is settled.
        """
        columns = [value.places[0].name for value in values if value.is_column]
        assigned = column
        column = column or (columns[0] if columns else "")
        found: list[_Place] = []
        for value in values:
            if column:
                self._moments += value.moments
                if value.operand is not None:
                    self._literals.append(Beside(column, value.operand, is_given))
                if value.terms:
                    self._sums.append(LiteralSum(column, value.terms, is_given))
            if not column or value.is_column or not value.moments:
                found += value.places
        functions = [place for place in found if not place.is_column]
        beside = [place for place in found if place.is_column]
        if assigned:
            beside.append(_Place(assigned, -1, -1, is_column=True))
        # Each pair is checked by itself; a statement may have thousands of both. One pair says
        # it then.
        if len(beside) * len(functions) > _PAIRS_MAX:
            self._mixtures.append(Mixture(beside[0].name, functions[0].name))
        else:
            self._mixtures += [self._mixture(one, two) for one in beside for two in functions]
        return [] if beside and functions else found

    def _mixture(self, column: _Place, function: _Place) -> Mixture:
        up, down = self._terms.scale(function.start, function.end)
        if column.start >= 0:
            column_up, column_down = self._terms.scale(column.start, column.end)
            up, down = up + column_down, down + column_up
        return Mixture(column.name, function.name, up, down, self._counted(function))

    def _counted(self, function: _Place) -> int:
        """Return the nanoseconds of what a function counts since 1970, 0 where it does not."""
        if function.name == "UNIX_TIMESTAMP":
            return SECOND_NS
        # TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), in any zone.
        keys = [token.key for token in self._tokens[function.start : function.end]]
        if keys[:2] == ["TIMESTAMPDIFF", "("] and keys[5:7] == [",", "UTC_TIMESTAMP"]:
            return UNIT_NS.get(keys[2], 0)
        return 0
