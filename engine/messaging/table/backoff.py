"""How long a sent message waits before it is due again without an ack, and when it has been sent often enough.

With ``e`` sends before this one::

    base = clamp(ack_wait * 2**e, min_backoff, max_backoff)       e = 0: at least ack_wait
    wait = uniform in [base, 4/3 base), and in [3/4 max, max] where that would pass max

Integers throughout, so no epoch is too large: the original shifts in 64 bits and collapses
to the minimum at epoch 54. A max_backoff below ack_wait does not shorten the first wait,
because a consumer is promised ack_wait for its first try.

``epoch`` counts the claims of a row, so it shows how often the message was sent, by whichever
process. A row whose ``epoch`` has reached ``vt_max_attempts`` is not claimed again when its wait
is over: the claim *parks* it, which makes it due at `PARKED_NS`. No poll ever finds it due, and in ``poller_idx`` it
is the last of its priority.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.messaging.table.table_settings import WAIT_MAX_NS


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.table_settings import Properties


# Jitter in steps of a millionth: finer than anyone can see, and the product fits.
DICE_BITS: Final = 20


class WaitRange(NamedTuple):
    """The wait is uniform in [low_ns, low_ns + span_ns)."""

    low_ns: int
    span_ns: int


def wait_range(properties: Properties, epoch: int) -> WaitRange:
    """Return the range of waits for a message sent *epoch* times before."""
    ack_wait_ns = properties.ack_wait_ns
    ceiling_ns = properties.max_backoff_ns or WAIT_MAX_NS
    # More doublings than bits in the ceiling change nothing, and would only make huge ints.
    doubled_ns = ack_wait_ns << min(max(epoch, 0), ceiling_ns.bit_length())
    base_ns = min(max(doubled_ns, properties.min_backoff_ns), ceiling_ns)
    if epoch <= 0 and base_ns < ack_wait_ns:
        return WaitRange(ack_wait_ns, ack_wait_ns // 3)
    if base_ns * 4 // 3 > ceiling_ns:
        low_ns = ceiling_ns * 3 // 4
        return WaitRange(low_ns, ceiling_ns - low_ns)
    return WaitRange(base_ns, base_ns // 3)


def spread(waits: WaitRange, dice: int) -> int:
    """Return the wait in ns that *dice*, DICE_BITS random bits, picks from *waits*."""
    return waits.low_ns + (waits.span_ns * dice >> DICE_BITS)


# In the year 2255: after every wait that a claim can write (WAIT_MAX_NS from now), and seven
# years before the end of a signed BIGINT. Its digits are easy to recognise in a SELECT.
PARKED_NS: Final = 9 * 10**18


def is_spent(properties: Properties, epoch: int) -> bool:
    """Return whether a message that was sent *epoch* times must not be sent again."""
    return 0 < properties.max_attempts <= epoch
