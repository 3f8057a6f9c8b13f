"""The table `decisions` of a server's directory, with the outcomes of the transactions that began on its shards.

A row is written inside a transaction's own part on its first shard, so it exists exactly if the
transaction is committed; `outcome` reads it with a lock, which waits for no other. A row `self …` for each shard
holds a random id, by which transactions name the place of their outcome: a name must
never be looked up in the table of another server, where an absent row would mean nothing. Nor in a copy
of it: next to the id is its database, and the copy of a database under another name gets an id of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Final

from streamfrom.engine.fleet.directory import CREATE
from streamfrom.engine.fleet.lock_connection import NO_DIRECTORY
from streamfrom.proxy.errors import BackendError, BackendUnavailable, NoDecisionTable
from streamfrom.proxy.twophase.xid import GlobalId, text_of


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime


TABLE: Final = "streamfrom.decisions"
# Privileges on the table for a commit in two phases: `record` runs as the account.
DECIDES: Final = "SELECT, INSERT"
_READ_SELF: Final = "SELECT branches FROM streamfrom.decisions WHERE id = '{own}'"
# Of two proxies that write it the first one wins.
_WRITE_SELF: Final = (
    "INSERT INTO streamfrom.decisions (id, branches, time_created) VALUES ('{own}', {value}, 0)"
    " ON DUPLICATE KEY UPDATE branches ="
    " IF(SUBSTR(branches, 17) = SUBSTR({value}, 17), branches, {value})"
)
_READ_ALL: Final = "SELECT id, branches FROM streamfrom.decisions WHERE id LIKE 'streamfrom:{table}:%' LIMIT 10000"
# NOWAIT: a locked row shows that its transaction is alive, which is an answer and nothing to wait for.
_READ_ONE: Final = "SELECT id FROM streamfrom.decisions WHERE id = '{whole}' FOR UPDATE NOWAIT"
_DELETE: Final = "DELETE FROM streamfrom.decisions WHERE id IN ({names})"
_DECIDE: Final = (
    "INSERT INTO streamfrom.decisions (id, branches, time_created) SELECT '{whole}', '{branches}', {now_ns}"
    " FROM streamfrom.decisions WHERE id = '{own}' AND branches = {value}"
)
_DELETED_AT_ONCE: Final = 500


class TransactionOutcome(Enum):
    """The outcome of a transaction."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    UNKNOWN = "not known yet"


class Decisions:
    """The decision tables of all shards of this proxy. *new_id* draws 16 hexadecimal digits."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._ids: dict[ShardRuntime, str] = {}
        self._done: dict[ShardRuntime, list[GlobalId]] = {}

    def known(self) -> dict[str, ShardRuntime]:
        """Return the shards whose table has been found, by its id."""
        return {table: shard for shard, table in self._ids.items() if not shard.is_retired}

    async def table_of(self, shard: ShardRuntime) -> str:
        """Return the id of *shard*'s table, which is made if there is none. Raises NoDecisionTable, with the server's reason."""
        table = self._ids.get(shard)
        if table is None:
            try:
                table = await read_own_id(shard)
                if table is None:
                    await self._write_own_id(shard)
                    table = await read_own_id(shard)
            except (BackendError, BackendUnavailable) as error:
                raise NoDecisionTable(TABLE, str(shard), str(error)) from error
            assert table is not None
            self._ids = {s: known for s, known in self._ids.items() if not s.is_retired}
            for other, taken in self._ids.items():
                # One database under the names of two keyspaces: the one is just going, the other coming.
                if taken == table and other.place != shard.place:
                    reason = f"it has the id of the one of shard '{other}': is it a copy?"
                    raise NoDecisionTable(TABLE, str(shard), reason)
            self._ids[shard] = table
        return table

    async def _write_own_id(self, shard: ShardRuntime) -> None:
        value = _self_value(self._new_id(), shard.database)
        sql = _WRITE_SELF.format(own=_own(shard.database), value=value)
        try:
            await shard.control.execute(sql)
        except BackendError as error:
            if error.code not in NO_DIRECTORY:
                raise
            for making in CREATE:
                await shard.control.execute(making)
            await shard.control.execute(sql)

    async def outcome(self, shard: ShardRuntime, whole: GlobalId) -> TransactionOutcome:
        """Return the outcome of *whole*, which began on *shard*; one of its branches is prepared.

        Only then an absent row means that it was rolled back. UNKNOWN while it may still go
        either way (the row is locked), and while the shard does not respond.
        """
        try:
            if await read_own_id(shard) != whole.table:
                return TransactionOutcome.UNKNOWN
            found = await shard.control.rows(_READ_ONE.format(whole=whole))
        except (BackendError, BackendUnavailable):
            return TransactionOutcome.UNKNOWN
        return TransactionOutcome.COMMITTED if found else TransactionOutcome.ROLLED_BACK

    async def rows(self, shard: ShardRuntime) -> dict[GlobalId, frozenset[str]]:
        """Return the committed transactions of a shard whose table is known, each with the tables of its other branches.

        Raises BackendUnavailable and BackendError.
        """
        found = await shard.control.rows(_READ_ALL.format(table=self._ids[shard]))
        return {
            whole: frozenset(text_of(branches).split(","))
            for name, branches in found
            if (whole := GlobalId.parse(text_of(name))) is not None
        }

    def forget(self, shard: ShardRuntime, whole: GlobalId) -> None:
        """Make the next `flush` delete the row of *whole*: all its branches have ended."""
        self._done.setdefault(shard, []).append(whole)

    async def flush(self) -> None:
        """Delete rows that may be forgotten; try again later for those that cannot be deleted now."""
        done, self._done = self._done, {}
        for shard, ids in done.items():
            try:
                for at in range(0, len(ids), _DELETED_AT_ONCE):
                    names = (f"'{whole}'" for whole in ids[at : at + _DELETED_AT_ONCE])
                    await shard.control.execute(_DELETE.format(names=", ".join(names)))
            except (BackendError, BackendUnavailable):
                self._done.setdefault(shard, []).extend(ids)


def record(database: str, whole: GlobalId, branches: Iterable[str], now_ns: int) -> bytes:
    """Return the INSERT that decides for *whole*; it affects one row, or this is another table.

    *branches*: the tables of the other shards. *database*: of the first shard.
    """
    return _DECIDE.format(
        whole=whole,
        branches=",".join(branches),
        now_ns=now_ns,
        own=_own(database),
        value=_self_value(whole.table, database),
    ).encode()


async def read_own_id(shard: ShardRuntime) -> str | None:
    """Return the id of *shard*'s table; None if there is no table, or only a copy.

    Raises BackendUnavailable and BackendError.
    """
    try:
        found = await shard.control.rows(_READ_SELF.format(own=_own(shard.database)))
    except BackendError as error:
        if error.code not in NO_DIRECTORY:
            raise
        return None
    value = found[0][0] if found else b""
    data = value if isinstance(value, bytes | bytearray) else str(value).encode()
    table, _, database = data.partition(b" ")
    return table.decode() if database == shard.database.encode() else None


def _own(database: str) -> str:
    """Return the key of the row that holds the id for *database*, whose name may be longer than a key."""
    return f"self {hashlib.sha256(database.encode()).hexdigest()[:32]}"


def _self_value(table: str, database: str) -> str:
    """Return the literal for the row `self`, whatever the character set around it."""
    return f"x'{f'{table} {database}'.encode().hex()}'"
