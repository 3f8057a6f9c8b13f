"""Reading definitions as conversations: message tables, and objects through which a statement writes to tables that it does not name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreQuery
from streamfrom.engine.messaging.table.message_table import RawColumn, RawIndex, RawTable
from streamfrom.engine.messaging.table.table_settings import MARK, is_message_table
from streamfrom.sqlparse_ext.text.identifiers import literal, quote_identifier
from streamfrom.sqlparse_ext.writes.hidden_writes import HiddenWrites, cascading


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation, StoreAnswer


# An answer with the definitions of more tables would hold up the loop for more than 5 ms.
TABLES_AT_ONCE: Final = 8
# There is no such database, table or engine, or the account may not see it.
_GONE: Final = frozenset({1044, 1049, 1142, 1146, 1932})


def discover(
    database: str,
    names: Collection[str] | None = None,
    placed: Collection[str] = (),
    running: Collection[str] = (),
) -> Conversation[tuple[RawTable, ...]]:
    """Read the definitions of the tables of *database* that carry the mark, of those named *names* only if given.

    MariaDB opens a table to report it, and would wait until the client that locks its definition is done,
    even if that client waits for this. These tables are returned as hidden ones.

    placed: the names of other tables whose columns are read as well.
    running: message tables that must not be missed if a server silently leaves out locked ones.
    """
    schema = literal(database.encode())
    asked = names
    has_skipped = False
    if asked is None:
        answer = yield StoreQuery(_marked(schema), 1, skips_locked=True)
        has_skipped = answer.has_skipped
        asked = {*placed, *(_text(name) for (name,), _ in answer.rows)}
    tables: list[RawTable] = []
    ordered = sorted(asked)
    for start in range(0, len(ordered), TABLES_AT_ONCE):
        some = ordered[start : start + TABLES_AT_ONCE]
        answer = yield StoreQuery(_definitions(schema, some), 10, skips_locked=True)
        has_skipped |= answer.has_skipped
        tables += _tables(answer, placed)
    if has_skipped:
        # Locked between two parts of the answer: half a definition is useless.
        tables = [raw for raw in tables if raw.columns and raw.indexes]
        tables += yield from _hidden(schema, tables, names)
    missed = {*running} - {
        raw.name for raw in tables if raw.is_hidden or is_message_table(raw.comment)
    }
    if names is not None:
        missed &= {*names}
    # MySQL reads its dictionary, which hides nothing.
    if missed and (yield from _is_mariadb()):
        tables += yield from _look_again(database, sorted(missed), placed)
    return tuple(tables)


def _is_mariadb() -> Conversation[bool]:
    answer = yield StoreQuery(b"SELECT VERSION()", 1)
    return any(b"MariaDB" in (version or b"") for (version,), _ in answer.rows)


def _look_again(
    database: str, names: Sequence[str], placed: Collection[str]
) -> Conversation[tuple[RawTable, ...]]:
    """Read tables that information_schema did not show. MariaDB leaves out some locked tables without a warning.

    A table that cannot be read, because it is locked or the server is too slow, is returned as a hidden one.
    """
    there, hidden = [], []
    for name in names:
        place = ".".join(map(quote_identifier, (database, name))).encode()
        try:
            yield StoreQuery(b"SELECT 1 FROM %b WHERE FALSE" % place, 1, skips_locked=True)
        except ServerRefused as refused:
            if refused.code not in _GONE:
                hidden.append(RawTable(name, "", (), (), is_hidden=True))
        else:
            there.append(name)
    return (*hidden, *((yield from discover(database, there, placed)) if there else ()))


def come_or_gone(database: str, known: Collection[str]) -> Conversation[frozenset[str] | None]:
    """Read which tables of *database* carry the mark and are not *known*, or the other way round.

    Return None if a lock hides some of them.
    """
    answer = yield StoreQuery(_marked(literal(database.encode())), 1, skips_locked=True)
    marked = frozenset(_text(name) for (name,), _ in answer.rows)
    return None if answer.has_skipped else marked.symmetric_difference(known)


def _marked(schema: bytes) -> bytes:
    return (
        b"SELECT table_name FROM information_schema.tables WHERE table_schema = %b"
        b" AND table_type = 'BASE TABLE' AND table_comment LIKE '%%%b%%'"
        % (schema, MARK.encode())
    )


def _tables(answer: StoreAnswer, placed: Collection[str]) -> Iterator[RawTable]:
    parts: dict[bytes | None, list[tuple[bytes | None, ...]]] = defaultdict(list)
    for (part, _, *values), _ in answer.rows:
        parts[part].append(tuple(values))
    columns: dict[str, list[RawColumn]] = defaultdict(list)
    for table, name, data_type, default, nullable, extra, column_type, collation in parts[
        b"column"
    ]:
        columns[_text(table)].append(
            RawColumn(
                name=_text(name),
                data_type=_text(data_type),
                default=None if default is None else _text(default),
                nullable=nullable == b"YES",
                extra=_text(extra),
                column_type=_text(column_type),
                collation=_text(collation or b""),
            )
        )
    indexes: dict[str, dict[tuple[str, bool], list[str]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for table, name, non_unique, column, *_ in parts[b"index"]:
        # A functional index part has no column; its empty name fits none of ours.
        indexes[_text(table)][_text(name), non_unique == b"0"].append(_text(column))
    # LIKE compares by the server's collation, which ignores case.
    marked = {
        _text(name): (_text(comment), _text(options))
        for name, comment, options, *_ in parts[b"table"]
        if is_message_table(_text(comment))
    }
    for owner in (*marked, *(columns.keys() & set(placed) - marked.keys())):
        comment, options = marked.get(owner, ("", ""))
        yield RawTable(
            name=owner,
            comment=comment,
            columns=tuple(columns[owner]),
            indexes=tuple(
                RawIndex(index, unique, tuple(columns_of))
                for (index, unique), columns_of in indexes[owner].items()
            ),
            is_partitioned="partitioned" in options.lower(),
        )


def _definitions(schema: bytes, names: Collection[str]) -> bytes:
    """Return the query for the definitions of those of the tables *names* that carry the mark.

    A row of its answer: the part it belongs to, its place there, the table's name, and seven values.
    """
    known = b", ".join(literal(name.encode()) for name in names)
    return b" UNION ALL ".join(
        (
            b"SELECT 'table' AS part, 0 AS place, table_name AS owner, table_comment AS a, create_options AS b,"
            b" NULL AS c, NULL AS d, NULL AS e, NULL AS f, NULL AS g FROM information_schema.tables"
            b" WHERE table_schema = %b AND table_name IN (%b) AND table_type = 'BASE TABLE'"
            b" AND table_comment LIKE '%%%b%%'" % (schema, known, MARK.encode()),
            b"SELECT 'column', ordinal_position, table_name, column_name, data_type, column_default,"
            b" is_nullable, extra, column_type, collation_name FROM information_schema.columns"
            b" WHERE table_schema = %b AND table_name IN (%b)" % (schema, known),
            b"SELECT 'index', seq_in_index, table_name, index_name, non_unique, column_name, NULL, NULL, NULL, NULL"
            b" FROM information_schema.statistics WHERE table_schema = %b AND table_name IN (%b)"
            b" ORDER BY part, owner, place, a" % (schema, known),
        )
    )


def _hidden(
    schema: bytes, seen: Sequence[RawTable], asked: Collection[str] | None
) -> Conversation[tuple[RawTable, ...]]:
    """Return the tables of *schema*, or those *asked* for, that are missing in *seen* because a lock hides them."""
    answer = yield StoreQuery(
        b"SELECT table_name FROM information_schema.tables WHERE table_schema = %b" % schema, 1
    )
    known = {raw.name for raw in seen}
    wanted = None if asked is None else {name.lower() for name in asked}
    names = (_text(name) for (name,), _ in answer.rows)
    return tuple(
        RawTable(name, "", (), (), is_hidden=True)
        for name in names
        if name not in known and (wanted is None or name.lower() in wanted)
    )


def _text(value: bytes | None) -> str:
    return (value or b"").decode()


# A line of SHOW GRANTS for a whole database, perhaps by a pattern, or for all.
_GRANT: Final = re.compile(r"(GRANT|REVOKE) (.+) ON (?:\*|`((?:[^`]|``)*)`)\.\* (?:TO|FROM) ")
_SERVERS_OWN: Final = b"'sys', 'mysql', 'information_schema', 'performance_schema'"


@dataclass(frozen=True, slots=True)
class HiddenDefinitions:
    """The definitions of one database.

    schema: its name.
    parts: the names of its views, and of tables with triggers or with cascading foreign keys, each after its kind: "view",
        "trigger" with the event, "key" with the table to which it refers. And "function" with the names of the stored functions and
        packages with functions of the whole server.
    hides_triggers: the account cannot see triggers.
    is_partial: a lock hid some of it.
    """

    schema: str = ""
    parts: frozenset[tuple[str, str, str]] = frozenset()
    hides_triggers: bool = False
    is_partial: bool = False

    def with_tables(
        self, names: Collection[str], found: HiddenDefinitions
    ) -> HiddenDefinitions:
        """Return the definitions after the tables *names* were read again; *found* has only these."""
        again = frozenset(map(str.lower, names))
        others = (
            one for one in self.parts if one[0] == "function" or one[1].lower() not in again
        )
        return replace(self, schema=found.schema, parts=found.parts.union(others))

    def hidden_writes(self, keyspace: str, queues: Collection[str]) -> HiddenWrites:
        """Return which statements write to tables that they do not name. queues: the message tables."""
        named: defaultdict[str, list[str]] = defaultdict(list)
        parents: defaultdict[str, set[str]] = defaultdict(set)
        for kind, name, other in self.parts:
            named[kind].append(name)
            if kind == "key":
                parents[name.lower()].add(other.lower())
            elif other == "UPDATE":
                named["update"].append(name)
        seen = (*named["view"], *named["trigger"])
        reaching = {name.lower() for name in (*seen, *queues)}
        return HiddenWrites(
            (self.schema, keyspace),
            (*seen, *cascading(parents, reaching)),
            queues,
            named["function"],
            named["update"],
            hides_triggers=self.hides_triggers,
        )


def read_hidden(
    database: str, names: Collection[str] | None = None
) -> Conversation[HiddenDefinitions]:
    """Read the definitions of *database*; if *names* is given, only of these tables, and no functions."""
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
    return HiddenDefinitions(
        database,
        frozenset(
            (_text(kind), _text(name), _text(other)) for (kind, name, other), _ in answer.rows
        ),
        hides_triggers=names is None and not (yield from sees_triggers(database)),
        is_partial=answer.has_skipped,
    )


def sees_triggers(database: str) -> Conversation[bool]:
    """Return whether the account sees all triggers of *database*, which requires the privilege TRIGGER on MySQL.

    MariaDB shows them to every account.
    """
    if (yield from _is_mariadb()):
        return True
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
