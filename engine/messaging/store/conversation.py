"""Conversations with a database, without any I/O.

A *conversation* is a generator that yields a `Query`, is sent its `Answer`, and returns a
result. The holder of a connection carries it out::

    query = next(conversation)
    while True:
        query = conversation.send(await execute(query))     # StopIteration.value: the result
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from streamfrom.sqlparse_ext.records import record


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import ShardName


T = TypeVar("T")


@record
class At:
    """Where, when and how a conversation is carried out.

    now_ns: read when the connection is in hand, so that waiting for one shortens no lease.
    is_elected: no other process can send the same rows meanwhile.
    is_careful: the server has refused rows of the transaction (`engine.messaging.store.row_writes.carefully`).
    """

    shard: ShardName
    now_ns: int
    is_elected: bool
    is_careful: bool = False


class ServerRefused(Exception):
    """The server answered with an error; its code and message. Thrown into a conversation."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@record
class StoreQuery:
    """One statement to send.

    values: how many leading columns of each row are decoded, the other columns stay raw; None decodes all there are.
    commits: a COMMIT follows in the same write. If the server refuses the statement, the COMMIT ends
        a transaction that has changed nothing.
    is_apart: the statement belongs to no transaction: the one that `LockSession.transact` begins starts after it.
    skips_locked: the statement reads definitions, and leaves out those that a DDL statement locks.
    patience_s: after this many seconds without an answer the statement is killed (error 1317); None for never.
    ahead: statements of the same transaction that are sent before this one in the same write, whatever the server's answers to
        them. A refusal of any of them is raised after the last answer.
    """

    sql: bytes
    values: int | None = 0
    commits: bool = False
    is_apart: bool = False
    skips_locked: bool = False
    patience_s: float | None = None
    ahead: tuple[StoreQuery, ...] = ()


# The decoded leading columns as the text protocol's bytes, and the raw rest of the row's
# payload: length-encoded strings as they came, b"" when nothing is left.
Row: TypeAlias = tuple[tuple[bytes | None, ...], bytes]


@record
class StoreAnswer:
    """The server's answer: the rows of a query, or the number of affected rows.

    has_skipped: a query that `skips_locked` has left out definitions.
    ahead: the answers to the statements that were sent before it in the same write.
    types: the types of the columns that are not decoded, in a form of the store; b"" if it knows none.
    """

    rows: Sequence[Row] = ()
    affected: int = 0
    has_skipped: bool = False
    ahead: tuple[StoreAnswer, ...] = ()
    types: bytes = b""


def together(queries: Sequence[StoreQuery]) -> Conversation[tuple[StoreAnswer, ...]]:
    """Send statements of one transaction in one write; return their answers."""
    *ahead, last = queries
    answer = yield replace(last, ahead=tuple(ahead))
    return (*answer.ahead, answer)


Conversation: TypeAlias = Generator[StoreQuery, StoreAnswer, T]
