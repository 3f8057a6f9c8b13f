"""INSERTs of one new message whose effect is known from the literals of its row: nothing in their texts is completed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamfrom.sqlparse_ext.literal_values import decode_literal
from streamfrom.sqlparse_ext.statements import InsertSource, Kind, Shape, Statement
from streamfrom.sqlparse_ext.text.lexer_patterns import ROWS
from streamfrom.sqlparse_ext.writes.completion import NO_STRUCTURE, TableFacts
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind, Key
from streamfrom.sqlparse_ext.writes.moments import NS_MIN, moment_plan
from streamfrom.sqlparse_ext.writes.times import NO_MOMENTS, SECOND_NS


# As many digits as a moment has; the ordinary way decides what becomes of more.
_DIGITS_MAX: Final = 19
_TIME: Final = "time_next"


@dataclass(frozen=True, slots=True)
class PlainInsert:
    """What INSERTs of one shape do.

    Attributes:
        facts: the facts of their table.
    """

    facts: TableFacts
    _id: int | None  # its place in the row
    _priority: int | None
    _time: int | None

    def of(self, statement: Statement) -> Effect | None:
        """Return the effect of *statement*; None where the ordinary way has to find it."""
        row, facts = statement.row, self.facts
        if row is None:
            return None
        try:
            raw = None if self._id is None else row[self._id]
            priority = facts.default_priority
            if self._priority is not None:
                if not _is_number(row[self._priority]):
                    return None
                priority = int(row[self._priority])
            time_ns = facts.default_time_next_ns or 0
            if self._time is not None:
                if not _is_number(row[self._time]):
                    return None
                time_ns = int(row[self._time])
                if SECOND_NS <= time_ns < NS_MIN:
                    return None  # refused: it would be a moment of 1970
        except IndexError:
            return None
        if raw is None:
            return Effect(EffectKind.NEW, None, generated=Key(None, priority, time_ns))
        if _is_number(raw):
            ident = facts.id_form.stored(int(raw))
        elif raw[:1] == b"'":
            ident = facts.id_form.stored(decode_literal(raw, statement.mode))
        else:
            return None
        # The server may generate another id in place of 0.
        if ident is None or ident == 0:
            return None
        return Effect(EffectKind.NEW, (ident,), (Key(ident, priority, time_ns),))


def _is_number(raw: bytes) -> bool:
    return raw.isdigit() and len(raw) <= _DIGITS_MAX


def plain_insert(shape: Shape, facts: TableFacts) -> PlainInsert | None:
    """Return what INSERTs of *shape* do; None for other statements, and where more decides than id, priority and ``time_next``."""
    insert = shape.insert
    if (
        shape.kind is not Kind.INSERT
        or insert is None
        or insert.source is not InsertSource.VALUES
        or insert.columns is None
        or insert.ignore
        or insert.on_duplicate
        or not shape.template.endswith(ROWS)
        or shape.uses & NO_STRUCTURE
        or not shape.tables
        or shape.tables[0].name.lower() != facts.name.lower()
        or facts.first_layout
        or facts.refuses_delays
        or moment_plan(shape, facts.times) is not NO_MOMENTS
        or not facts.times.names.intersection(insert.columns) <= {_TIME}
    ):
        return None
    id_column = facts.id_column.lower()
    if id_column not in insert.columns and not facts.id_auto_increment:
        return None
    places = {name: place for place, name in enumerate(insert.columns)}
    return PlainInsert(facts, places.get(id_column), places.get("priority"), places.get(_TIME))
