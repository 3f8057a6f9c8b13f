"""The audit of a queue whose keys go one by one: what may not have happened, from what its consumers saw.

A consumer reads a message some time after it came. So its first reading says when it came at the
latest, and the last moment at which the consumer's socket was seen empty says after what it came.
A violation is only what holds for both.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final


SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Arrival:
    """One delivery; all times are those of one monotonic clock, in nanoseconds.

    after_ns: its bytes came after this moment.
    read_ns: they had come by then.
    """

    id: int
    after_ns: int
    read_ns: int


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """One ack.

    sent_ns: just before it was sent.
    answered_ns: just after its answer was read; 0 where none came.
    affected: the rows that it has changed, as the answer says.
    """

    id: int
    sent_ns: int
    answered_ns: int
    affected: int


@dataclass(frozen=True, slots=True)
class OrderAudit:
    """What was found: a sentence for each violation.

    sent_again: deliveries beyond the first, which nothing but a death explains.
    read_late: deliveries that were read after the answer to their ack; all but the violations may have come before it.
    """

    messages: int
    sent_again: int
    read_late: int
    violations: tuple[str, ...] = field(default=())

    def text(self) -> str:
        """Return the number of violations, and the first of them."""
        shown = "; ".join(self.violations[:SHOWN])
        return f"{len(self.violations)} of {self.messages:,} messages: {shown}"


def order_audit(
    keys: Iterable[Sequence[int]],
    arrivals: Iterable[Arrival],
    acks: Iterable[Acknowledgement],
    *,
    has_deaths: bool,
) -> OrderAudit:
    """Judge a run in which every message was delivered and acknowledged at last.

    keys: for each key its messages, in the order of the queue.
    has_deaths: a dispatcher has died, so messages in flight may have come again.
    """
    came: dict[int, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        came[arrival.id].append(arrival)
    acked = _effective(acks)
    found = []
    messages = read_late = 0
    for ids in keys:
        before: Acknowledgement | None = None
        for place, id_ in enumerate(ids):
            messages += 1
            ack = acked.get(id_)
            deliveries = came.get(id_, [])
            if not deliveries or ack is None:
                found.append(f"{id_} was never delivered, or never acknowledged")
            early = place > 0 and [
                each for each in deliveries if before is None or each.read_ns < before.sent_ns
            ]
            if early:
                found.append(f"{id_} came before the ack of {ids[place - 1]} was sent")
            if ack is not None and ack.answered_ns:
                late = [each for each in deliveries if each.after_ns > ack.answered_ns]
                found += [f"{id_} came after its own ack was answered"] * len(late)
                read_late += sum(each.read_ns > ack.answered_ns for each in deliveries)
            if len(deliveries) > 1 and not has_deaths:
                found.append(f"{id_} came {len(deliveries)} times")
            before = ack
    sent_again = sum(map(len, came.values())) - len(came)
    return OrderAudit(messages, sent_again, read_late, tuple(found))


def _effective(acks: Iterable[Acknowledgement]) -> dict[int, Acknowledgement]:
    """Return of each message the ack that has changed its row; the first one where no answer says it."""
    found: dict[int, Acknowledgement] = {}
    for ack in acks:
        known = found.get(ack.id)
        if known is None or (ack.affected and not known.affected):
            found[ack.id] = ack
    return found
