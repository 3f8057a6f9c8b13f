"""The audit that ends every run: what was sent is what arrived and what was acknowledged."""

from collections.abc import Iterable

from bench.fleet import LabError


IDS_SHOWN = 5


class AuditError(LabError):
    """A run lost a message or made one up: its figures are worth nothing."""


def audit(sent: Iterable[int], received: Iterable[int], acked: Iterable[int]) -> int:
    """Compare the ids *sent* with those *received* (in any order, maybe twice) and *acked*.

    Returns: how many deliveries were not the first: at-least-once allows them.

    Raises:
        AuditError: a message was lost or not acknowledged, or is one that was never sent.
    """
    sent_set, acked_set, deliveries = set(sent), set(acked), list(received)
    received_set = set(deliveries)
    faults = [
        f"{len(ids)} {name} ({', '.join(map(str, sorted(ids)[:IDS_SHOWN]))}, …)"
        for name, ids in (
            ("lost", sent_set - received_set),
            ("not acknowledged", sent_set - acked_set),
            ("never sent", (received_set | acked_set) - sent_set),
        )
        if ids
    ]
    if faults:
        raise AuditError(f"of {len(sent_set)} messages: {'; '.join(faults)}")
    return len(deliveries) - len(received_set)
