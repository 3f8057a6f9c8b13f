"""What a database defines by which a statement writes to tables that it does not name: how it is read, and kept up to date."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.store.conversation import StoreQuery
from streamfrom.sqlparse_ext.text.identifiers import literal
from streamfrom.sqlparse_ext.writes.hidden_writes import HiddenWrites, cascading


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation


# A line of SHOW GRANTS that concerns a whole database, perhaps by a pattern, or all.
_GRANT: Final = re.compile(r"(GRANT|REVOKE) (.+) ON (?:\*|`((?:[^`]|``)*)`)\.\* (?:TO|FROM) ")
_SERVERS_OWN: Final = b"'sys', 'mysql', 'information_schema', 'performance_schema'"


@dataclass(frozen=True, slots=True)
class HiddenDefinitions:
    """What was read of one database.

    schema: its name.
    views, triggered: the names of its views, and of its tables with triggers.
    update_triggered: the names of its tables with triggers that fire on UPDATE.
    parents: the tables to which foreign keys with a cascade refer, by the table that has the keys.
    functions: the names of stored functions, and packages of such, of the whole server.
    hides_triggers: the account cannot see triggers.
    is_partial: a lock hid some of it.
    """

    schema: str = ""
    views: frozenset[str] = frozenset()
    triggered: frozenset[str] = frozenset()
    update_triggered: frozenset[str] = frozenset()
    parents: Mapping[str, frozenset[str]] = field(default_factory=dict)
    functions: frozenset[str] = frozenset()
    hides_triggers: bool = False
    is_partial: bool = False

    def with_tables(
        self, names: Collection[str], found: HiddenDefinitions
    ) -> HiddenDefinitions:
        """Return what is known once the tables *names* were read again; *found* is of them alone."""
        lower = frozenset(map(str.lower, names))

        def others(known: Collection[str]) -> frozenset[str]:
            return frozenset(name for name in known if name.lower() not in lower)

        parents = {child: self.parents[child] for child in others(self.parents)}
        return replace(
            self,
            schema=found.schema,
            views=others(self.views) | found.views,
            triggered=others(self.triggered) | found.triggered,
            update_triggered=others(self.update_triggered) | found.update_triggered,
            parents={**parents, **found.parents},
            functions=self.functions | found.functions,
        )

    def hidden_writes(self, keyspace: str, queues: Collection[str]) -> HiddenWrites:
        """Return which statements write to tables that they do not name. queues: the message tables."""
        reaching = {name.lower() for name in (*self.views, *self.triggered, *queues)}
        parents = {
            child.lower(): {parent.lower() for parent in each}
            for child, each in self.parents.items()
        }
        return HiddenWrites(
            (self.schema, keyspace),
            (*self.views, *self.triggered, *cascading(parents, reaching)),
            queues,
            self.functions,
            self.update_triggered,
            hides_triggers=self.hides_triggers,
        )


def read_hidden(
    database: str, names: Collection[str] | None = None
) -> Conversation[HiddenDefinitions]:
    """Read what *database* defines; of the tables *names* alone, and no functions, if they are given."""
    schema = literal(database.encode())

    def of(column: bytes) -> bytes:
        if names is None:
            return b""
        return b" AND %b IN (%b)" % (column, b", ".join(literal(one.encode()) for one in names))

    parts = [
        b"SELECT 'view' AS part, table_name AS owner, '' AS parent FROM information_schema.views"
        b" WHERE table_schema = %b%b" % (schema, of(b"table_name")),
        b"SELECT 'trigger', event_object_table, event_manipulation FROM information_schema.triggers"
        b" WHERE event_object_schema = %b%b" % (schema, of(b"event_object_table")),
        b"SELECT 'key', table_name, referenced_table_name"
        b" FROM information_schema.referential_constraints"
        b" WHERE constraint_schema = %b AND (update_rule NOT IN ('RESTRICT', 'NO ACTION')"
        b" OR delete_rule NOT IN ('RESTRICT', 'NO ACTION'))%b" % (schema, of(b"table_name")),
    ]
    if names is None:
        parts.append(
            b"SELECT 'function', routine_name, '' FROM information_schema.routines"
            b" WHERE routine_type <> 'PROCEDURE' AND routine_schema NOT IN (%b)" % _SERVERS_OWN
        )
    answer = yield StoreQuery(b" UNION ALL ".join(parts), 3, skips_locked=True)
    found: dict[bytes | None, set[str]] = defaultdict(set)
    parents: dict[str, set[str]] = defaultdict(set)
    for (part, owner, parent), _ in answer.rows:
        name = (owner or b"").decode()
        found[part].add(name)
        if part == b"key":
            parents[name].add((parent or b"").decode())
        elif parent == b"UPDATE":
            found[b"update trigger"].add(name)
    return HiddenDefinitions(
        database,
        frozenset(found[b"view"]),
        frozenset(found[b"trigger"]),
        frozenset(found[b"update trigger"]),
        {child: frozenset(each) for child, each in parents.items()},
        frozenset(found[b"function"]),
        is_partial=answer.has_skipped,
    )


def sees_triggers(database: str) -> Conversation[bool]:
    """Return whether the account sees all triggers of *database*, which on MySQL takes the privilege TRIGGER.

    MariaDB shows them to every account.
    """
    answer = yield StoreQuery(b"SHOW GRANTS", 1)
    sees = False
    for (line,), _ in answer.rows:
        found = _GRANT.match((line or b"").decode())
        if found is None or not re.search(r"\b(TRIGGER|ALL PRIVILEGES)\b", found[2]):
            continue
        if found[3] is None or _is_like(database, found[3].replace("``", "`")):
            if found[1] == "REVOKE":
                return False  # partial_revokes
            sees = True
    return sees


def _is_like(name: str, pattern: str) -> bool:
    """Return whether *name* is LIKE *pattern*."""
    parts = re.findall(r"\\.|[%_]|[^\\%_]+|\\", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    expression = "".join(wild.get(each) or re.escape(each.removeprefix("\\")) for each in parts)
    return re.fullmatch(expression, name, re.DOTALL | re.IGNORECASE) is not None
