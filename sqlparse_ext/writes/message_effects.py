"""The effects of statements on a message table: the messages that they touch.

`complete` (of `completion`) comes before a statement is sent, `effect` returns the change that the engine's
cache needs at commit. Both look at one statement and at the facts of one table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.sqlparse_ext.literal_values import integer_of
from streamfrom.sqlparse_ext.records import record
from streamfrom.sqlparse_ext.statements import InsertSource, Kind, Opaque, Uses
from streamfrom.sqlparse_ext.text.insert_rows import insert_rows
from streamfrom.sqlparse_ext.writes.completion import (
    COUNT_SEND,
    NO_STRUCTURE,
    TableFacts,
    is_ack,
)


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Shape, Statement, Value

# Represents all message tables of a shard if it is not known which of them a statement wrote.
ANY_TABLE: Final = ""
# A larger INSERT is read by one poll, which costs less than its text.
_KEYS_MAX: Final = 200
# A heartbeat computes time_next from itself: `time_next = time_next + INTERVAL 1 MINUTE`.
_RELATIVE: Final = re.compile(
    rb"\btime_next`?\s*=(?:(?!\bWHERE\b)[^,])*?\btime_next\b", re.IGNORECASE
)
_OF_AN_ACK: Final = frozenset({"time_acked", "time_next", "epoch"})
NS_MAX: Final = 2**63 - 1
_NO_SINGLE_TABLE: Final = Uses.JOIN | Uses.CTE | NO_STRUCTURE


class EffectKind(StrEnum):
    """The change to the messages that a statement touches."""

    NEW = "NEW"
    RESCHEDULE = "RESCHEDULE"
    HEARTBEAT = "HEARTBEAT"
    REORDER = "REORDER"  # another priority, and an unchanged time
    ACK = "ACK"
    REMOVE = "REMOVE"
    UNKNOWN = "UNKNOWN"
    TOUCH = "TOUCH"  # columns that do not affect scheduling


# With these, messages stay with their receivers.
KEEPS_LEASES: Final = frozenset({EffectKind.HEARTBEAT, EffectKind.REORDER})
# These do not depend on earlier deliveries or acks.
STANDS_ALONE: Final = frozenset({EffectKind.NEW, EffectKind.TOUCH})
_RESCHEDULES: Final = frozenset(
    {EffectKind.RESCHEDULE, EffectKind.HEARTBEAT, EffectKind.UNKNOWN}
)
_COUNTED: Final = frozenset({EffectKind.ACK, EffectKind.REMOVE})


class Key(NamedTuple):
    """A new message: lower priority goes first; a NULL time_next is 0."""

    id: Value
    priority: int
    time_next_ns: int


@record
class Effect:
    """The messages that a statement touches once it is committed."""

    kind: EffectKind
    # Exactly those of ACK, REMOVE and NEW, at least those of RESCHEDULE, HEARTBEAT, REORDER and TOUCH; None if the text does not show
    # them, and the table has to be read. A REPLACE reschedules.
    ids: tuple[Value, ...] | None
    keys: tuple[Key, ...] = ()  # the keys of new messages whose ids are known
    # The key of the one new message whose id the server generates; its id is None.
    generated: Key | None = None
    rows: int | None = None  # how many rows it acked or removed, if the server has reported it

    @property
    def needs_leases(self) -> bool:
        """Return whether the changed rows must show beforehand that they were delivered.

        An id that a removal does not name may be inserted again before a look at the rows finds it gone. The new row
        differs from the old one only by showing no lease.
        """
        return self.kind in _RESCHEDULES or (
            self.kind is EffectKind.REMOVE and self.ids is None
        )

    def answered(self, insert_id: int, rows: int | None) -> Effect:
        """Return the effect with the id in the server's OK, 0 for none, and with the rows that it counted."""
        if rows is not None and self.kind in _COUNTED:
            return Effect(self.kind, self.ids, rows=rows)
        if self.generated is None or not insert_id:
            return self
        return Effect(self.kind, (insert_id,), (self.generated._replace(id=insert_id),))


# Any row may have changed in any way: the table has to be read.
UNKNOWN: Final = Effect(EffectKind.UNKNOWN, None)


def effect(statement: Statement, facts: TableFacts) -> Effect | None:
    """Return the messages that *statement*, once completed, touches; None if it touches none.

    *facts* are of one message table among those that the statement names.
    """
    shape = statement.shape
    match shape.kind:
        case Kind.INSERT | Kind.REPLACE:
            if _is_target(shape, facts):
                return _insert_effect(statement, facts)
        case Kind.UPDATE:
            return _update_effect(statement, facts)
        case Kind.DELETE:
            if shape.uses & _NO_SINGLE_TABLE or _is_target(shape, facts):
                return Effect(EffectKind.REMOVE, _exact_ids(statement, facts))
        case Kind.LOAD:
            replaces = "REPLACE" in shape.options
            return Effect(EffectKind.RESCHEDULE if replaces else EffectKind.NEW, None)
        case Kind.DDL if shape.verb == "TRUNCATE":
            return Effect(EffectKind.REMOVE, None)
        case _:
            pass
    return None


def _is_target(shape: Shape, facts: TableFacts) -> bool:
    """Return whether the statement writes this table, rather than only reads it."""
    is_unknown = bool(shape.uses & NO_STRUCTURE) or not shape.tables
    return is_unknown or shape.tables[0].name.lower() == facts.name.lower()


def _update_effect(statement: Statement, facts: TableFacts) -> Effect | None:
    shape = statement.shape
    if shape.uses & _NO_SINGLE_TABLE:
        return UNKNOWN
    if not _is_target(shape, facts):
        return None
    assigned = shape.assignments
    if facts.id_column.lower() in assigned:
        return UNKNOWN
    if is_ack(shape):
        return Effect(EffectKind.ACK, _exact_ids(statement, facts))
    if decisive := assigned.keys() & facts.decisive:
        if decisive == {"priority"}:
            kind = EffectKind.REORDER
        elif "time_next" in assigned and _RELATIVE.search(shape.template):
            kind = EffectKind.HEARTBEAT
        else:
            kind = EffectKind.RESCHEDULE
        return Effect(kind, named_ids(statement, facts))
    ids = named_ids(statement, facts)
    return None if ids is None else Effect(EffectKind.TOUCH, ids)


def named_ids(statement: Statement, facts: TableFacts) -> tuple[Value, ...] | None:
    """Return the ids that bound the touched rows; None if no ids do."""
    operands = statement.shape.conditions.get(facts.id_column.lower())
    values = statement.values(operands) if operands is not None else None
    if values is None:
        return None
    equal = facts.id_form.equal
    ids = [equal(value) for value in values if value is not None]
    return None if None in ids else tuple(ids)


def _exact_ids(statement: Statement, facts: TableFacts) -> tuple[Value, ...] | None:
    """Return the ids if each of their rows is touched, except acknowledged ones."""
    shape = statement.shape
    is_exact = (
        shape.condition_only
        and len(shape.conditions) == 1
        and shape.guards <= {"time_acked"}
        and not shape.uses & Uses.LIMIT
    )
    return named_ids(statement, facts) if is_exact else None


def _insert_effect(statement: Statement, facts: TableFacts) -> Effect | None:
    shape = statement.shape
    insert = shape.insert
    # A REPLACE or an upsert may find a message that was delivered.
    replaces = shape.kind is Kind.REPLACE or shape.assignments.keys() & facts.decisive
    unknown = Effect(EffectKind.RESCHEDULE if replaces else EffectKind.NEW, None)
    # IGNORE and ON DUPLICATE KEY may leave or change an existing row, by any unique key, and the
    # text does not show its priority and time.
    if insert is None or insert.ignore or insert.on_duplicate:
        return unknown
    id_column = facts.id_column.lower()
    columns: dict[str, list[Value | Opaque]]
    names = (id_column, "priority", "time_next", "time_acked")
    if insert.source is InsertSource.SET:
        count = 1
        columns = {
            name: [statement.known(insert.set[name])] for name in names if name in insert.set
        }
    else:
        rows = insert_rows(statement) if insert.columns else None
        if rows is None or len(rows) > _KEYS_MAX:
            return unknown
        count = len(rows)
        found = ((name, rows.column(name)) for name in names)
        columns = {name: values for name, values in found if values is not None}
    columns.setdefault(id_column, [None] * count)
    keys = _keys(columns, id_column, facts)
    if keys is None:
        return unknown
    if keys and keys[0].id is None:
        return Effect(EffectKind.NEW, None, generated=keys[0])
    ids = tuple(key.id for key in keys)
    if not ids:
        return None
    if replaces:
        return Effect(EffectKind.RESCHEDULE, ids)
    return Effect(EffectKind.NEW, ids, keys)


def _keys(
    columns: Mapping[str, list[Value | Opaque]], id_column: str, facts: TableFacts
) -> tuple[Key, ...] | None:
    """Return the keys of the rows that wait for delivery; None if one of them is not literal.

    The id of a single row may be None: the server generates it.
    """
    ids = columns[id_column]
    count = len(ids)
    default_ns = facts.default_time_next_ns or 0
    priorities = columns.get("priority") or [facts.default_priority] * count
    times_ns = columns.get("time_next") or [default_ns] * count
    acked = columns.get("time_acked") or [None] * count
    keys = []
    for row in range(count):
        id_: Value | Opaque = ids[row]
        priority, time_ns = _number(priorities[row]), _number(times_ns[row])
        if acked[row] is not None:
            if isinstance(acked[row], Opaque):
                return None
            continue
        if isinstance(id_, Opaque) or priority is None or time_ns is None:
            return None
        if id_ is not None:
            id_ = facts.id_form.stored(id_)
            if id_ is None:
                return None
        if id_ is None or (id_ == 0 and facts.id_auto_increment):
            # Of several ids the server returns the first, and the increment is its own.
            if count > 1 or not facts.id_auto_increment:
                return None
            id_ = None
        keys.append(Key(id_, priority, time_ns))
    return tuple(keys)


def _number(value: Value | Opaque) -> int | None:
    """Return the integer that the server stores, NULL being 0; None if the text does not show it."""
    return 0 if value is None else integer_of(value)


def early_moment(statement: Statement, effect: Effect) -> int | None:
    """Return the ``time_acked`` of a completed ack, in nanoseconds, if it does nothing else to messages that it names.

    With `vt_ack = early` this ack may be answered before it is written. None for any other statement: it
    has further conditions or assignments, or values that the text does not show.
    """
    shape = statement.shape
    assigned = shape.assignments
    if (
        effect.kind is not EffectKind.ACK
        or not effect.ids
        or not assigned.keys() <= _OF_AN_ACK
        or shape.uses & Uses.RETURNING
        # The client's own epoch cannot be written later.
        or ("epoch" in assigned and COUNT_SEND not in shape.template)
        or statement.known(assigned.get("time_next")) is not None
    ):
        return None
    value = statement.known(assigned["time_acked"])
    return value if isinstance(value, int) and 0 <= value <= NS_MAX else None
