"""Which message tables a database has, and how they are defined: read as conversations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreQuery
from streamfrom.engine.messaging.table.message_table import RawColumn, RawIndex, RawTable
from streamfrom.engine.messaging.table.table_settings import MARK, is_message_table
from streamfrom.sqlparse_ext.text.identifiers import literal, quote_identifier


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation, StoreAnswer


# An answer with the definitions of more tables would hold the loop up for longer than 5 ms.
TABLES_AT_ONCE: Final = 8
# There is no such database or table, also in its engine, or none that the account may see.
_GONE: Final = frozenset({1044, 1049, 1142, 1146, 1932})


def discover(
    database: str,
    names: Collection[str] | None = None,
    placed: Collection[str] = (),
    running: Collection[str] = (),
) -> Conversation[tuple[RawTable, ...]]:
    """Read the definitions of the tables of *database* that carry the mark, of those named *names* alone if they are given.

    MariaDB opens a table to report it, and would wait until the client that locks its definition is done,
    be it the client that waits for this. Such tables come as hidden ones.

    placed: the names of other tables, whose columns are asked for as well.
    running: message tables that are not to be missed, of a server that may leave out locked ones without a word.
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
        # Locked between two parts of the answer: half of a definition is none.
        tables = [raw for raw in tables if raw.columns and raw.indexes]
        tables += yield from _hidden(schema, tables, names)
    missed = {*running} - {
        raw.name for raw in tables if raw.is_hidden or is_message_table(raw.comment)
    }
    if names is not None:
        missed &= {*names}
    return (*tables, *(yield from _look_again(database, sorted(missed), placed)))


def _look_again(
    database: str, names: Sequence[str], placed: Collection[str]
) -> Conversation[tuple[RawTable, ...]]:
    """Read tables that information_schema did not show. On MariaDB it leaves out some that are locked without a warning.

    A table that cannot be looked at, as it is locked or the server is short of time, comes as a hidden one.
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
    # LIKE compares by the server's collation, in which case does not count.
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
    """Return the question for the definitions of those of the tables *names* that carry the mark.

    A row of its answer: which part it belongs to, its place there, the table's name, and seven values.
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
    """Return the tables of *schema*, or those *asked* for, that are not among *seen*, of which a lock hides some."""
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
