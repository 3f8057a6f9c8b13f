"""The rules by which a failed statement is sent again; no other module has such rules. Pure.

How an attempt ended, and what follows (`decide`; its test is the same as a table):

| ending | what follows outside a transaction | inside one |
|---|---|---|
| UNSENT, READ_ONLY | it waits for the shard, and is sent again | the error stands |
| BROKE_OFF, a read | the same | the error stands |
| BROKE_OFF, anything else | the error stands: whether it took effect is unknown | the same |
| STALE, FULL | it is sent again at once, one time | the same |
| DEADLOCK, an ack with autocommit | it is sent again at once, DEADLOCKS_MAX times | the error stands |
| DEADLOCK, anything else | the error stands: its client knows what else it has read | the same |
| ANSWERED | the answer stands | the same |

An answer of which the client has seen a part, and the answer of a statement that was stopped, always stand. A
transaction begins with the first shard or savepoint that it reaches, not with its BEGIN. From then on no statement in it
waits, because locks would be held meanwhile, and a repeated read would not be of its snapshot.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.statements import Kind, Shape, Uses
from streamfrom.sqlparse_ext.writes.completion import is_ack


if TYPE_CHECKING:
    from streamfrom.proxy.errors import BackendError
    from streamfrom.proxy.wire.resultset import Err


# ER_SERVER_SHUTDOWN, ER_READ_ONLY_MODE, ER_SERVER_OFFLINE_MODE: the server did nothing.
_READ_ONLY: Final = frozenset({1053, 1836, 3032})
# ER_OPTION_PREVENTS_STATEMENT names the option: --read-only, --super-read-only, but also
# --secure-file-priv.
_OPTION_PREVENTS: Final = 1290
# ER_UNKNOWN_STMT_HANDLER, ER_NEED_REPREPARE.
_STALE: Final = frozenset({1243, 1615})
# ER_MAX_PREPARED_STMT_COUNT_REACHED
_FULL: Final = 1461
# ER_LOCK_DEADLOCK: InnoDB has undone the whole transaction.
_DEADLOCK: Final = 1213
# In each deadlock one transaction continues, so the next deadlock is another one.
DEADLOCKS_MAX: Final = 5


class Ending(Enum):
    """How one attempt to run a statement ended."""

    UNSENT = auto()  # no connection was available, or it broke before the statement was sent
    BROKE_OFF = auto()  # the connection broke after bytes of the statement had been sent
    READ_ONLY = auto()  # the server did nothing: it is read-only or shutting down
    STALE = auto()  # the server did nothing: it no longer knows the prepared statement
    FULL = auto()  # the server did nothing: it has no room for another prepared statement
    DEADLOCK = auto()  # the server undid the statement, and the transaction that it was in
    ANSWERED = auto()  # the server answered anything else, an error or not


class Verdict(Enum):
    """The fate of a statement whose attempt has ended."""

    STANDS = auto()  # the client gets the answer or the error
    AGAIN = auto()  # the statement is sent again at once
    WAITS = auto()  # it waits for its shard, or one of those that answer alike, until the deadline at most, and is sent again


def decide(
    ending: Ending,
    *,
    in_transaction: bool = False,
    is_read: bool = False,
    is_ack: bool = False,
    is_final: bool = False,
    renewals: int = 0,
    is_late: bool = False,
) -> Verdict:
    """Return the verdict on *ending*.

    in_transaction: a transaction had begun before this attempt.
    is_read: `is_repeatable` is true of the statement.
    is_ack: `is_whole_ack` is true of the statement, and it commits itself.
    is_final: the client has seen some of the answer, or the statement was stopped.
    renewals: how often the statement was sent again at once before.
    is_late: the deadline for waiting has passed.
    """
    if is_final or ending is Ending.ANSWERED:
        return Verdict.STANDS
    # Once: a server that does not know a statement that was prepared a moment ago never will.
    if ending is Ending.STALE or ending is Ending.FULL:
        return Verdict.STANDS if renewals else Verdict.AGAIN
    if ending is Ending.DEADLOCK:
        again = is_ack and not in_transaction and renewals < DEADLOCKS_MAX
        return Verdict.AGAIN if again else Verdict.STANDS
    # A write whose connection broke may have happened, so it is never sent twice. In a
    # transaction nothing is repeated, because the work before it is lost with the connection.
    if in_transaction or is_late or (ending is Ending.BROKE_OFF and not is_read):
        return Verdict.STANDS
    return Verdict.WAITS


def ending_of(error: Err | BackendError | None, *, is_prepared: bool = False) -> Ending:
    """Return how an attempt ended that a server answered with *error*, None for success.

    is_prepared: the proxy can prepare the statement again; False if the client's text names it.
    """
    if error is None:
        return Ending.ANSWERED
    code = error.code
    if code in _READ_ONLY:
        return Ending.READ_ONLY
    if code == _OPTION_PREVENTS:
        # MariaDB writes --read-only, MySQL also --super-read-only: only the text distinguishes these
        # from other options.
        words = str(error)
        is_read_only = "read-only" in words or "read_only" in words
        return Ending.READ_ONLY if is_read_only else Ending.ANSWERED
    if code == _FULL:
        return Ending.FULL
    if code == _DEADLOCK:
        return Ending.DEADLOCK
    return Ending.STALE if is_prepared and code in _STALE else Ending.ANSWERED


def is_repeatable(shape: Shape) -> bool:
    """True for statements that change nothing, not even by a function we know of."""
    return shape.kind in {Kind.SELECT, Kind.SHOW, Kind.EXPLAIN} and not shape.uses & (
        Uses.UNPARSED
        | Uses.USER_VARIABLE
        | Uses.ADVISORY_LOCK
        | Uses.SETS_LAST_INSERT_ID
        | Uses.LOCKING_READ
        | Uses.INTO
    )


def is_whole_ack(shape: Shape) -> bool:
    """True for an ack of unacked rows: sent twice it counts none of them twice."""
    return (
        shape.kind is Kind.UPDATE
        and "time_acked" in shape.guards
        and is_ack(shape)
        and not shape.uses & Uses.USER_VARIABLE
    )
