"""Writes of many rows at once, of which the server may refuse some: the batch is halved until a bad row is alone.

The halves are written in one transaction. A server that refuses a statement undoes that statement, and keeps the
transaction and its locks. So the result of a batch is exactly what its COMMIT writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreQuery


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import At, Conversation


_NOT_OF_ROWS: Final = frozenset(
    {
        # Connections.
        *(1040, 1042, 1043, 1047, 1053, 1077, 1078, 1079, 1080, 1129, 1130, 1152, 1153, 1154),
        *(1155, 1156, 1157, 1158, 1159, 1160, 1161, 1184, 1203, 1226, 1317, 1429, 1430, 1927),
        *(1969, 3024, 3032, 3058, 3168, 3169, 4031),
        # Locks.
        *(1015, 1020, 1099, 1100, 1192, 1205, 1206, 1207, 1213, 1223, 1399, 1400, 1401, 1402),
        *(1613, 1614, 1637, 1689, 3100, 3101, 3572),
        # The server or the session writes nothing at all.
        *(1036, 1290, 1792, 1836, 3098),
        # Privileges.
        *(1044, 1045, 1095, 1141, 1142, 1143, 1147, 1227, 1345, 1370, 1396, 1410, 1449, 1698),
        *(1820, 1862, 3118, 3955),
        # A table, column, index, routine or variable is missing or has changed, or the statement is not SQL.
        *(1046, 1049, 1051, 1052, 1054, 1056, 1060, 1061, 1064, 1066, 1072, 1091, 1096, 1103),
        *(1109, 1111, 1115, 1136, 1146, 1149, 1176, 1193, 1231, 1235, 1248, 1267, 1305, 1347),
        *(1356, 1412, 1415, 1418, 1419, 1422, 1424, 1503, 1505, 1615, 1735, 1812, 1813, 1814),
        *(1932, 1956, 3719, 4161),
        # Memory, disk, files, logs and engines.
        *(1005, 1006, 1013, 1014, 1016, 1017, 1018, 1021, 1023, 1024, 1025, 1026, 1027, 1028),
        *(1030, 1031, 1033, 1034, 1035, 1037, 1038, 1041, 1104, 1114, 1116, 1119, 1126, 1135),
        *(1180, 1181, 1182, 1194, 1195, 1196, 1197, 1286, 1297, 1390, 1436, 1461, 1534, 1598),
        *(1622, 1664, 1665, 1705, 1712, 1726, 1772, 1785, 1786, 1815, 1877, 1878, 3185, 3675),
        3679,
    }
)
# This range has the codes of client libraries: the connection failed.
_OF_CLIENTS: Final = range(2000, 3000)


def is_of_rows(code: int) -> bool:
    """Return whether a server that refuses a statement with *code* may accept it for other rows.

    It refused a CHECK, a trigger, a foreign key, a value that does not fit. All other errors concern every statement alike, or
    pass: then the batch is tried again unchanged. The codes are those of MySQL and MariaDB, whose common ones agree. A
    trigger may raise any code; one of these is taken for the server's own.
    """
    return bool(code) and code not in _OF_CLIENTS and code not in _NOT_OF_ROWS


T = TypeVar("T")
U = TypeVar("U")
OfT = TypeVar("OfT")  # the subject of a conversation

# Of one batch. Each costs about ten statements, and the rest of the batch is locked meanwhile.
REFUSED_MAX: Final = 20


class Halves(Generic[T]):
    """The part of a batch that is still to be written, and its items that stand alone and are refused.

    refused: these, each with the server's error.
    """

    def __init__(self, batch: Sequence[T]) -> None:
        self.refused: list[tuple[T, str]] = []
        self._parts: list[Sequence[T]] = [batch] if batch else []

    def next(self) -> Sequence[T]:
        """Return the next part to write; nothing at the end, or once REFUSED_MAX are refused."""
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
        """Return the items that were not tried individually."""
        return [item for part in self._parts for item in part]


@dataclass(slots=True)
class WrittenRows(Generic[T]):
    """The result of writing a batch.

    done: the written items, in the order of the batch.
    refused: the refused items, with the server's errors.
    left: the items that were not tried individually, because too many were refused.
    affected: how many rows the server counted.
    """

    done: list[T] = field(default_factory=list)
    refused: list[tuple[T, str]] = field(default_factory=list)
    left: list[T] = field(default_factory=list)
    affected: int = 0


def write(
    batch: Sequence[T], *statements: Callable[[Sequence[T]], bytes]
) -> Conversation[WrittenRows[T]]:
    """Write *batch* in the current transaction, as far as the server takes it.

    statements: return those for a part. Of several either all count or none, and the last one counts its rows.
    Raises ServerRefused for an error that is not about rows.
    """
    are_several = len(statements) > 1
    halves = Halves(batch)
    written: WrittenRows[T] = WrittenRows()
    affected = 0
    while part := halves.next():
        try:
            if are_several:
                yield StoreQuery(b"SAVEPOINT part")
            for statement in statements:
                affected = (yield StoreQuery(statement(part))).affected
        except ServerRefused as refused:
            if are_several:
                yield StoreQuery(b"ROLLBACK TO SAVEPOINT part")
            if not is_of_rows(refused.code):
                raise
            halves.refuse(part, refused.message)
        else:
            written.done += part
            written.affected += affected
    written.refused, written.left = halves.refused, halves.left
    return written


def commit(
    batch: Sequence[T], statement: Callable[[Sequence[T]], bytes], *, is_careful: bool
) -> Conversation[WrittenRows[T]]:
    """Write *batch*, perhaps empty, and end the transaction.

    is_careful: as in `carefully`, or the transaction has written something before. Otherwise the COMMIT goes
        in one write with the statement.
    """
    if is_careful or not batch:
        written = yield from write(batch, statement)
        yield StoreQuery(b"COMMIT")
        return written
    answer = yield StoreQuery(statement(batch), commits=True)
    return WrittenRows(list(batch), affected=answer.affected)


def carefully(
    transaction: Callable[[OfT, T, At], Conversation[U]],
) -> Callable[[OfT, T, At], Conversation[U]]:
    """Carry out a transaction; where the server refuses rows of it, carry it out again and leave them out.

    transaction: where `At.is_careful`, it must not rely on a COMMIT in the write of a statement that may be refused: such a
        COMMIT frees the locks, so unwritten rows must be locked and read again.
    """

    @wraps(transaction)
    def conversation(one: OfT, other: T, at: At) -> Conversation[U]:
        try:
            return (yield from transaction(one, other, at))
        except ServerRefused as refused:
            if not is_of_rows(refused.code):
                raise
        yield StoreQuery(b"ROLLBACK")
        yield StoreQuery(b"START TRANSACTION")
        return (yield from transaction(one, other, replace(at, is_careful=True)))

    return conversation
