"""Writes of many rows at once, of which the server may refuse some: the batch is halved until a bad row is alone.

The halves are written in one transaction. A server that refuses a statement undoes that statement, and keeps the
transaction and its locks. So what a batch returns is exactly what its COMMIT writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Final, Generic, ParamSpec, TypeVar

from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreQuery
from streamfrom.engine.messaging.store.refusals import is_of_rows


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation


T = TypeVar("T")
U = TypeVar("U")
P = ParamSpec("P")

# Of one batch. Each costs some ten statements, and the rest of the batch is locked meanwhile.
REFUSED_MAX: Final = 20


class Halves(Generic[T]):
    """What is left to write of a batch, and which of its items stand alone and are refused.

    refused: these, each with the server's words.
    """

    def __init__(self, batch: Sequence[T]) -> None:
        self.refused: list[tuple[T, str]] = []
        self._parts: list[Sequence[T]] = [batch] if batch else []

    def next(self) -> Sequence[T]:
        """Return what to write next; nothing at the end, or once REFUSED_MAX are refused."""
        if not self._parts or len(self.refused) >= REFUSED_MAX:
            return ()
        return self._parts.pop()

    def refuse(self, part: Sequence[T], why: str) -> None:
        """Note that the server refuses *part*, which `next` returned last."""
        if len(part) == 1:
            self.refused.append((part[0], why))
            return
        half = len(part) // 2
        self._parts += [part[half:], part[:half]]

    @property
    def left(self) -> list[T]:
        """Return what was not tried by itself."""
        return [item for part in self._parts for item in part]


@dataclass(slots=True)
class WrittenRows(Generic[T]):
    """What became of a batch.

    done: what was written, in the order of the batch.
    refused: what the server refuses, with its words.
    left: what was not tried by itself, since so much was refused.
    affected: how many rows the server counted.
    """

    done: list[T] = field(default_factory=list)
    refused: list[tuple[T, str]] = field(default_factory=list)
    left: list[T] = field(default_factory=list)
    affected: int = 0


def write(
    batch: Sequence[T], statement: Callable[[Sequence[T]], bytes]
) -> Conversation[WrittenRows[T]]:
    """Write *batch* in the transaction under way, as far as the server takes it. statement: returns that for a part.

    Raises ServerRefused for an error that is not about rows.
    """
    halves = Halves(batch)
    written: WrittenRows[T] = WrittenRows()
    while part := halves.next():
        try:
            answer = yield StoreQuery(statement(part))
        except ServerRefused as refused:
            if not is_of_rows(refused.code):
                raise
            halves.refuse(part, refused.message)
        else:
            written.done += part
            written.affected += answer.affected
    written.refused, written.left = halves.refused, halves.left
    return written


def commit(
    batch: Sequence[T], statement: Callable[[Sequence[T]], bytes], *, is_careful: bool
) -> Conversation[WrittenRows[T]]:
    """Write *batch*, and end the transaction.

    is_careful: as `carefully` says, or something has been written in the transaction before. Otherwise the COMMIT goes
        in one write with the statement.
    """
    if is_careful:
        written = yield from write(batch, statement)
        yield StoreQuery(b"COMMIT")
        return written
    answer = yield StoreQuery(statement(batch), commits=True)
    return WrittenRows(list(batch), affected=answer.affected)


def carefully(transaction: Callable[P, Conversation[U]]) -> Callable[P, Conversation[U]]:
    """Carry out a transaction; where the server refuses rows of it, carry it out again and leave them out.

    transaction: has an argument *is_careful*, False by default. With True it must not rely on a COMMIT in the write of a
        statement that may be refused: such a COMMIT frees the locks, so what is not written has to be locked and read again.
    """

    @wraps(transaction)
    def conversation(*args: P.args, **kwargs: P.kwargs) -> Conversation[U]:
        try:
            return (yield from transaction(*args, **kwargs))
        except ServerRefused as refused:
            if not is_of_rows(refused.code):
                raise
        yield StoreQuery(b"ROLLBACK")
        yield StoreQuery(b"START TRANSACTION")
        kwargs["is_careful"] = True
        return (yield from transaction(*args, **kwargs))

    return conversation
