"""When a message has been sent often enough, and where its row is then: the end of retries.

``epoch`` counts the claims of a row, so it says how often the message was sent, whichever process
sent it. A row whose ``epoch`` has reached ``vt_max_attempts`` is not claimed once more when its wait
is over: the claim *parks* it, which makes it due at `PARKED_NS`. No poll ever finds it due, and in ``poller_idx`` it
is the last of its priority.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.table_settings import Properties


# In the year 2255: after every wait that a claim can write (WAIT_MAX_NS from now), and seven
# years before the end of a signed BIGINT. Its digits are to be recognized in a SELECT.
PARKED_NS: Final = 9 * 10**18


def is_spent(properties: Properties, epoch: int) -> bool:
    """Return whether a message that was sent *epoch* times is to be sent no more."""
    return 0 < properties.max_attempts <= epoch
