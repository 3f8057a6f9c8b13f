"""The audit that ends every run: what was sent is what arrived and what was acknowledged."""

from collections.abc import Iterable
from dataclasses import dataclass


IDS_SHOWN = 5


class AuditError(Exception):
    """A run lost a message or made one up: its figures are worth nothing."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What became of the messages of one run.

    lost: sent, yet never seen by a consumer.
    unacked: sent, yet not acknowledged in the table.
    unknown: seen or acknowledged, yet never sent.
    duplicates: deliveries beyond the first; at-least-once allows them, so they are only counted.
    """

    sent: int
    received: int
    lost: tuple[int, ...]
    unacked: tuple[int, ...]
    unknown: tuple[int, ...]
    duplicates: int

    def check(self) -> None:
        """Raise AuditError unless every message arrived and was acknowledged, and no other."""
        faults = [
            f"{len(ids)} {name} ({', '.join(map(str, ids[:IDS_SHOWN]))}, …)"
            for name, ids in (
                ("lost", self.lost),
                ("not acknowledged", self.unacked),
                ("never sent", self.unknown),
            )
            if ids
        ]
        if faults:
            raise AuditError(f"of {self.sent} messages: {'; '.join(faults)}")


def audit(sent: Iterable[int], received: Iterable[int], acked: Iterable[int]) -> Audit:
    """Compare the ids *sent* with those *received* (in any order, maybe twice) and *acked*."""
    sent_set, acked_set = set(sent), set(acked)
    deliveries = list(received)
    received_set = set(deliveries)
    return Audit(
        sent=len(sent_set),
        received=len(deliveries),
        lost=tuple(sorted(sent_set - received_set)),
        unacked=tuple(sorted(sent_set - acked_set)),
        unknown=tuple(sorted((received_set | acked_set) - sent_set)),
        duplicates=len(deliveries) - len(received_set),
    )
