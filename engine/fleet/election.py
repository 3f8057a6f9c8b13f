"""The rules by which a shard elects its dispatcher; `elector` applies them.

The dispatcher of a shard is the member that holds a named lock on its primary. The lock belongs to a connection,
and the server frees it with the connection, after it has rolled back any uncommitted work.
So a write on this connection is the dispatcher's, or fails.

**Proof.** An answer on the lock's connection proves that the lock was held when the server read the
question, and therefore at least since the question was sent. The dispatcher sends messages for LEASE_NS
after that moment and not longer: the server frees the lock of a silent connection after
SILENCE_S, which is longer and counts from a later moment. That is a lease by two clocks that run
equally fast; they need not agree. A dispatcher whose proof is too old is in *jeopardy* (the term of Chubby's
sessions): it withholds messages, keeps its place, and continues with the next answer.

**Two names.** The lock has a plain name and one with the directory's secret (`lock_connection`). No two members can have
both. A member that has only one of them waits until a dispatcher by the other one would have noticed:

* by the plain name only (it cannot read the directory): LEASE_NS from the grant. A dispatcher without the plain name tries to
  take it with each proof, so by then it has found it taken, or has no proof any more.
* by the secret only (a connection of another account has the plain name): LEASE_NS from the reading of the secret. A dispatcher
  with an earlier secret reads it with each proof, so by then it has found it changed.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final


SECOND_NS: Final = 10**9

# How often an idle dispatcher pings: three pings are lost before LEASE_NS is over.
PING_NS: Final = SECOND_NS // 2
# A dispatcher that is cut off sends no longer than this.
LEASE_NS: Final = 2 * SECOND_NS
# `wait_timeout` of the lock's connection, in whole seconds: how long the server waits for a vanished
# dispatcher. Measured on MariaDB 10.11 and MySQL 9.7: the next one has the lock 10 ms after it.
SILENCE_S: Final = 3
# An answer that takes longer never comes: the lock is long gone.
ANSWER_NS: Final = 5 * SECOND_NS
# How long the server lets a candidate wait for the lock before the candidate reads the directory again. A member that joins or
# takes over announces it; this finds members that went, and changes that no member could announce.
ROUND_S: Final = 30

# How often a dispatcher looks for members that came or went: as often as others, which look once a round.
LOOK_NS: Final = ROUND_S * SECOND_NS

RETRY_FIRST_NS: Final = SECOND_NS // 20
RETRY_LAST_NS: Final = SECOND_NS


class LockHold(Enum):
    """How a connection has the dispatcher's lock.

    PLAIN: by its plain name, and it knows no other.
    BOTH: by both names.
    SECRET: by the name with the secret, because a connection of another account has the plain one.
    """

    PLAIN = auto()
    BOTH = auto()
    SECRET = auto()
