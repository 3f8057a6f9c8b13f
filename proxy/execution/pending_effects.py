"""The effects of a transaction on message tables, until its commit is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamfrom.sqlparse_ext.writes.message_effects import ANY_TABLE, UNKNOWN, Effect


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.sqlparse_ext.writes.hidden_writes import HiddenWrites


@dataclass(slots=True, eq=False)
class PendingEffects:
    """The effects of a transaction on message tables, which are reported to the engine at the commit."""

    # Reports to the engine the effects on one table of a shard, or on ANY_TABLE.
    _publish: Callable[[ShardRuntime, str, list[Effect]], None]
    # Returns how statements on a shard write to tables that they do not name.
    hidden: Callable[[ShardRuntime], HiddenWrites]
    # By shard and table. Unknown effects are kept once, however many statements had one.
    _pending: dict[tuple[ShardRuntime, str], list[Effect]] = field(default_factory=dict)

    def add(self, shard: ShardRuntime, table: str, effect: Effect) -> None:
        """Remember that *table* on *shard* will have changed once the transaction commits."""
        self._pending.setdefault((shard, table), []).append(effect)

    def wrote_unseen(self, shard: ShardRuntime) -> None:
        """Remember that any table on *shard* may have changed once the transaction commits."""
        self._pending[shard, ANY_TABLE] = [UNKNOWN]

    def committed(self) -> None:
        """Report the effects to the engine, table by table."""
        pending, self._pending = self._pending, {}
        for (shard, table), effects in pending.items():
            self._publish(shard, table, effects)

    def perhaps_committed(self) -> None:
        """Have the tables read that may have changed, and keep the effects for a later end of the transaction."""
        for shard, table in self._pending:
            self._publish(shard, table, [UNKNOWN])

    def rolled_back(self) -> None:
        """Drop the effects: no row has changed."""
        self._pending.clear()

    def taken(self) -> PendingEffects:
        """Return the pending effects as a separate object, which the session cannot drop."""
        taken = PendingEffects(self._publish, self.hidden)
        # The commit continues without its session: a client that leaves meanwhile calls
        # `rolled_back`, and the engine must still be informed of committed effects.
        taken._pending, self._pending = self._pending, {}
        return taken

    def partly_rolled_back(self) -> None:
        """Keep only that these tables may have changed, because the remaining effects are not known."""
        # A savepoint keeps no place in this list. An UNKNOWN effect makes the engine poll the
        # table, which costs one read and is never wrong.
        self._pending = {place: [UNKNOWN] for place in self._pending}
