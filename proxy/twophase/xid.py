"""Names of transactions over shards and of their branches, and the XA statements. Pure.

A server shows the names of all its prepared branches to every account, so a name must identify its owner
and the place of its outcome. Both are in the random id that every decision table carries
(`proxy.twophase.decisions`): it stays with the table wherever its server moves, and proxies that
call a shard differently still mean the same one.
https://dev.mysql.com/doc/refman/8.4/en/xa-statements.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


FORMAT_ID: Final = 0x5346

# A server takes 64 bytes for each half of a name.
_WHOLE: Final = re.compile(r"streamfrom:([0-9a-f]{16}):([0-9a-f]{32})")
_BRANCH: Final = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class GlobalId:
    """One transaction over several shards."""

    table: str  # the id of the decision table that will hold its outcome: its first shard's
    number: str  # 32 hexadecimal digits, drawn for this transaction only

    def __str__(self) -> str:
        return f"streamfrom:{self.table}:{self.number}"

    def branch(self, table: str) -> Xid:
        """Return the name of the branch on the shard whose decision table has the id *table*."""
        return Xid(self, table)

    @classmethod
    def parse(cls, text: str) -> GlobalId | None:
        """Return the transaction that *text* names; None if it is not one of ours."""
        found = _WHOLE.fullmatch(text)
        return None if found is None else cls(found[1], found[2])


@dataclass(frozen=True, slots=True)
class Xid:
    """One branch of a transaction.

    START opens it on a connection that is in no transaction. END closes it to further statements, and comes before PREPARE
    and ROLLBACK. PREPARE makes it outlive its connection and its server, until COMMIT or ROLLBACK on any connection.
    """

    whole: GlobalId
    branch: str

    def __str__(self) -> str:
        return f"'{self.whole}','{self.branch}',{FORMAT_ID}"

    def sql(self, verb: str) -> bytes:
        """Return the statement that does *verb* with it."""
        return f"XA {verb} {self}".encode()


def text_of(name: object) -> str:
    """Return a name, which MySQL gives as text and MariaDB as bytes; ours is ASCII, others' may be anything."""
    return name.decode("latin-1") if isinstance(name, bytes | bytearray) else str(name)


def recovered(row: Sequence[object]) -> Xid | None:
    """Return the branch that a row of XA RECOVER shows, None if it is not one of ours.

    A row is: format id, length of the first half, of the second, both halves as one.
    """
    format_id, whole_bytes, branch_bytes, data = row
    text = text_of(data)
    if format_id != FORMAT_ID or len(text) != int(str(whole_bytes)) + int(str(branch_bytes)):
        return None
    cut = int(str(whole_bytes))
    whole = GlobalId.parse(text[:cut])
    if whole is None or not _BRANCH.fullmatch(text[cut:]):
        return None
    return Xid(whole, text[cut:])
