"""Which acks may be answered before they are written, where a table says `vt_ack = early`."""

from __future__ import annotations

from typing import Final

from streamfrom.sqlparse_ext.statements import Statement, Uses
from streamfrom.sqlparse_ext.writes.completion import COUNT_SEND
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind


_ASSIGNED: Final = frozenset({"time_acked", "time_next", "epoch"})
NS_MAX: Final = 2**63 - 1


def early_moment(statement: Statement, effect: Effect) -> int | None:
    """Return what a completed ack makes of ``time_acked``, in nanoseconds, if it does nothing else to messages that it names.

    None for any other statement: it has further conditions or assignments, or values that the text does not show.
    """
    shape = statement.shape
    assigned = shape.assignments
    if (
        effect.kind is not EffectKind.ACK
        or not effect.ids
        or not assigned.keys() <= _ASSIGNED
        or shape.uses & Uses.RETURNING
        # The client's own epoch is none that could be written later.
        or ("epoch" in assigned and COUNT_SEND not in shape.template)
        or statement.known(assigned.get("time_next")) is not None
    ):
        return None
    value = statement.known(assigned["time_acked"])
    return value if isinstance(value, int) and 0 <= value <= NS_MAX else None
