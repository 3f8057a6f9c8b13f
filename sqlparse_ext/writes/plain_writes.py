"""Acks and INSERTs of one message whose effect is known from their literals, without a completed text.

An ack that is written together with others is not sent as its client wrote it. So if the ids and the moment of all acks of one
shape are plain, the text is completed only for an ack that is sent alone after all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.literal_values import decode_literal
from streamfrom.sqlparse_ext.statements import (
    InsertSource,
    Kind,
    ListSlot,
    Shape,
    Slot,
    Statement,
    Value,
)
from streamfrom.sqlparse_ext.text.lexer_patterns import LIST, NUMBER, ROWS, STRING
from streamfrom.sqlparse_ext.text.nodes import SECOND_NS
from streamfrom.sqlparse_ext.writes.completion import NO_STRUCTURE, TableFacts, complete
from streamfrom.sqlparse_ext.writes.message_effects import (
    NS_MAX,
    Effect,
    EffectKind,
    Key,
    early_moment,
    effect,
    named_ids,
)
from streamfrom.sqlparse_ext.writes.moments import NS_MIN, moment_plan
from streamfrom.sqlparse_ext.writes.times import NO_MOMENTS


# Two moments; if they make different texts, the text contains the moment of its completion.
_SAMPLES_NS: Final = (NS_MIN, NS_MIN + 1)
_LITERAL: Final = re.compile(b"[" + NUMBER + STRING + b"]")


@dataclass(frozen=True, slots=True)
class PlainAck:
    """The effect of acks of one shape."""

    facts: TableFacts  # the facts of their table
    shape: Shape  # the shape of their completed texts
    _moment: Slot | None  # None: that of the completion
    # The texts of the shape and of the completed one as formats of their literals, and the place of the moment of the
    # completion among the latter.
    _written: bytes
    _completed: bytes
    _now_at: int | None

    def of(self, statement: Statement, now_ns: int) -> tuple[tuple[Value, ...], int] | None:
        """Return the ids and ``time_acked`` of *statement*; None if it has to be completed to know them."""
        ids = named_ids(statement, self.facts)
        if not ids:
            return None
        if self._moment is None:
            return ids, now_ns
        moment = statement.known(self._moment)
        if isinstance(moment, int) and NS_MIN <= moment <= NS_MAX:
            return ids, moment
        return None

    def text(self, statement: Statement, acked_ns: int) -> bytes | None:
        """Return the completed text of an ack; None if it is laid out differently from its template, or has a list.

        Finding the places of its parts takes ten times as long, a thirtieth of a message of steady traffic.
        """
        literals = tuple(statement.literals)
        if statement.runs or self._written % literals != statement.sql:
            return None
        if self._now_at is not None:
            literals = (*literals[: self._now_at], b"%d" % acked_ns, *literals[self._now_at :])
        return self._completed % literals


def _format(template: bytes) -> bytes:
    return _LITERAL.sub(b"%b", template.replace(b"%", b"%%"))


def plain_ack(
    sample: Statement, facts: TableFacts, parse: Callable[[bytes], Statement]
) -> PlainAck | None:
    """Return the effect of acks of *sample*'s shape; None for other statements, and if more than ids and a moment differ."""
    shape = sample.shape
    ids = shape.conditions.get(facts.id_column.lower(), ())
    acked = shape.assignments.get("time_acked")
    moment = acked if isinstance(acked, Slot) else None
    if (
        shape.kind is not Kind.UPDATE
        or not all(isinstance(operand, Slot | ListSlot) for operand in ids)
        # No other value can change the effect.
        or sum(map(shape.template.count, (NUMBER, STRING, LIST)))
        != len(ids) + bool(moment is not None)
    ):
        return None
    moments, texts = [], []
    for now_ns in _SAMPLES_NS:
        try:
            completion = complete(sample, facts, now_ns)
        except StreamfromError:
            return None
        completed = sample if completion is None else parse(completion.text)
        texts.append(completed)
        done = effect(completed, facts)
        moments.append(None if done is None else early_moment(completed, done))
    expected = _SAMPLES_NS if moment is None else (sample.known(moment),) * 2
    if tuple(moments) != expected:
        return None
    first, second = texts
    pairs = enumerate(zip(first.literals, second.literals, strict=True))
    now_at = next((place for place, (one, other) in pairs if one != other), None)
    written, completed_text = map(_format, (shape.template, first.shape.template))
    return PlainAck(facts, first.shape, moment, written, completed_text, now_at)


# As many digits as a moment has; the ordinary way handles longer ones.
_DIGITS_MAX: Final = 19
_TIME: Final = "time_next"


@dataclass(frozen=True, slots=True)
class PlainInsert:
    """The effect of INSERTs of one shape."""

    facts: TableFacts  # the facts of their table
    _id: int | None  # its place in the row
    _priority: int | None
    _time: int | None

    def of(self, statement: Statement) -> Effect | None:
        """Return the effect of *statement*; None if the ordinary way has to find it."""
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
    """Return the effect of INSERTs of *shape*; None for other statements, and if it depends on more than id, priority and ``time_next``."""
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
