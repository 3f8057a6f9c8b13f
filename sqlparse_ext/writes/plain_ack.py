"""Acks that need no completed text to be known: which messages they name, and when.

An ack that is written with others is not sent as its client wrote it. So where the ids and the moment of all acks of one
shape are plain, the text is completed only for an ack that is sent by itself after all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.statements import Kind, ListSlot, Slot
from streamfrom.sqlparse_ext.text.lexer_patterns import LIST, NUMBER, STRING
from streamfrom.sqlparse_ext.writes.completion import complete
from streamfrom.sqlparse_ext.writes.early_ack import NS_MAX, early_moment
from streamfrom.sqlparse_ext.writes.message_effects import effect, named_ids
from streamfrom.sqlparse_ext.writes.moments import NS_MIN


if TYPE_CHECKING:
    from collections.abc import Callable

    from streamfrom.sqlparse_ext.statements import Shape, Statement, Value
    from streamfrom.sqlparse_ext.writes.completion import TableFacts


# Two moments by which a text shows that it takes the one of its completion.
_SAMPLES_NS: Final = (NS_MIN, NS_MIN + 1)


@dataclass(frozen=True, slots=True)
class PlainAck:
    """What acks of one shape do.

    Attributes:
        facts: the facts of their table.
        shape: the shape of their completed texts.
    """

    facts: TableFacts
    shape: Shape
    _moment: Slot | None  # None: that of the completion

    def of(self, statement: Statement, now_ns: int) -> tuple[tuple[Value, ...], int] | None:
        """Return the ids and ``time_acked`` of *statement*; None where it has to be completed to know them."""
        ids = named_ids(statement, self.facts)
        if not ids:
            return None
        if self._moment is None:
            return ids, now_ns
        moment = statement.known(self._moment)
        if isinstance(moment, int) and NS_MIN <= moment <= NS_MAX:
            return ids, moment
        return None


def plain_ack(
    sample: Statement, facts: TableFacts, parse: Callable[[bytes], Statement]
) -> PlainAck | None:
    """Return what acks of the shape of *sample* do; None for other statements, and where more than ids and a moment differ."""
    shape = sample.shape
    ids = shape.conditions.get(facts.id_column.lower(), ())
    acked = shape.assignments.get("time_acked")
    moment = acked if isinstance(acked, Slot) else None
    if (
        shape.kind is not Kind.UPDATE
        or not all(isinstance(operand, Slot | ListSlot) for operand in ids)
        # No other value can decide about anything.
        or sum(map(shape.template.count, (NUMBER, STRING, LIST)))
        != len(ids) + bool(moment is not None)
    ):
        return None
    moments = []
    completed = sample
    for now_ns in _SAMPLES_NS:
        try:
            completion = complete(sample, facts, now_ns)
        except StreamfromError:
            return None
        completed = sample if completion is None else parse(completion.text)
        done = effect(completed, facts)
        moments.append(None if done is None else early_moment(completed, done))
    expected = _SAMPLES_NS if moment is None else (sample.known(moment),) * 2
    return PlainAck(facts, completed.shape, moment) if tuple(moments) == expected else None
