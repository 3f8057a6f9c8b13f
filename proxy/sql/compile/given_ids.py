"""The ids that the proxy gave to rows of an INSERT some of which may not become rows: IGNORE, ON DUPLICATE KEY UPDATE.

An insert id is that of a row that exists, as with AUTO_INCREMENT: of the first row that was inserted, else of the row
that was updated. The answer counts rows and does not name them, so the rows are looked for where the count leaves it open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamfrom.proxy.execution.session_tracking import generated
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.session_state import SessionState


@dataclass(frozen=True, slots=True)
class GivenIds:
    """The ids of one INSERT.

    ids: in the order of the rows, rising.
    count: the number of the statement's rows.
    may_update: a row that is there may be updated.
    names_updated: the statement was given `LAST_INSERT_ID(id)`, so the server's insert id is that of an updated row.
    """

    table: str
    column: str
    ids: Sequence[int]
    count: int
    may_update: bool
    names_updated: bool

    async def told(
        self,
        state: SessionState,
        shards: Sequence[ShardRuntime],
        affected: int,
        servers: int,
        before: int,
    ) -> int:
        """Return the insert id for the client, and note LAST_INSERT_ID().

        affected: the affected rows of all *shards*.
        servers: the insert id of the servers' answers, 0 for none.
        before: the session's LAST_INSERT_ID() before the statement, where it `names_updated`.

        Raises BackendUnavailable or BackendError if a shard does not say which rows it has.
        """
        first = await self._first(shards, affected)
        if first:
            generated(state, first)
            return first
        if self.names_updated and servers:
            # Only the OK names an updated row.
            generated(state, before)
        return servers if affected or not self.names_updated else 0

    async def _first(self, shards: Sequence[ShardRuntime], affected: int) -> int:
        if not affected:
            return 0
        if not self.may_update and affected == self.count:
            return self.ids[0]
        found = []
        for shard in shards:
            column, ids = quote_identifier(self.column), ", ".join(map(str, self.ids))
            table = f"{quote_identifier(shard.database)}.{quote_identifier(self.table)}"
            sql = f"SELECT MIN({column}) FROM {table} WHERE {column} IN ({ids})"  # noqa: S608
            ((least,),) = await shard.control.rows_uncommitted(sql)
            if least is not None:
                found.append(int(least))
        return min(found, default=0)
