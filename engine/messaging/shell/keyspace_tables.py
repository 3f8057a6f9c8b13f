"""What is known of one keyspace's message tables, and what runs of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamfrom.engine.messaging.table.discovery import HiddenDefinitions
from streamfrom.sqlparse_ext.writes.hidden_writes import NOTHING_HIDDEN, HiddenWrites


if TYPE_CHECKING:
    from streamfrom.engine.errors import TableLoadError
    from streamfrom.engine.messaging.shell.purger import Purger
    from streamfrom.engine.messaging.shell.runner import Runner
    from streamfrom.engine.messaging.table.message_table import MessageTable, RawTable
    from streamfrom.engine.sharding.keyspace import Keyspace, ShardName
    from streamfrom.sqlparse_ext.stored_forms import ColumnType


@dataclass(slots=True)
class KeyspaceTables:
    """Definitions are what the last reading found.

    by_name: the message tables, usable or not.
    spelled: their names by these in lower case.
    raw: what each was made of.
    runners: what runs each that can be used.
    placed: the other tables that the vschema spreads over shards.
    types: of the columns, in lower case, of such tables.
    """

    keyspace: Keyspace
    by_name: dict[str, MessageTable | TableLoadError] = field(default_factory=dict)
    spelled: dict[str, str] = field(default_factory=dict)
    raw: dict[str, RawTable] = field(default_factory=dict)
    hidden: HiddenDefinitions = field(default_factory=HiddenDefinitions)
    hidden_writes: HiddenWrites = NOTHING_HIDDEN
    runners: dict[str, tuple[Runner, Purger]] = field(default_factory=dict)
    shards: tuple[ShardName, ...] = field(init=False)
    placed: frozenset[str] = field(init=False)
    types: dict[str, dict[str, ColumnType]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shards = tuple(shard.name for shard in self.keyspace.shards)
        self.placed = placed_by(self.keyspace)

    def name(self, name: str) -> str:
        """Return *name* as the database spells it, if it is known in another case."""
        return name if name in self.by_name else self.spelled.get(name.lower(), name)

    def runner(self, name: str) -> Runner | None:
        """Return what runs a table; None if there is no such table, or it cannot be used."""
        running = self.runners.get(self.name(name))
        return None if running is None else running[0]


def placed_by(keyspace: Keyspace) -> frozenset[str]:
    """Return the tables that the vschema of *keyspace* spreads over shards."""
    vschema = keyspace.vschema
    if vschema is None or not vschema.sharded or len(keyspace.shards) == 1:
        return frozenset()
    return frozenset(name for name, table in vschema.tables.items() if table.column_vindexes)
