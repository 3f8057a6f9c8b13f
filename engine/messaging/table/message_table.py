"""A message table as the database describes it, checked once.

`load` turns the information_schema rows of one table into a `MessageTable`, or into the
error that every statement on that table then gets. Two layouts are known: the current one
(id, priority, epoch, time_next, time_acked, and any columns) and Vitess's first one
(time_scheduled, id, time_next, epoch, time_created, time_acked, message), which has no
priority. The texts of the faults are the original's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import TableLoadError, UnknownColumn
from streamfrom.engine.messaging.table import key_column
from streamfrom.engine.messaging.table.groups import column_faults
from streamfrom.engine.messaging.table.table_settings import (
    CommentError,
    Properties,
    in_flight_fault,
    parse_comment,
)
from streamfrom.sqlparse_ext.stored_forms import ColumnType, stored_form
from streamfrom.sqlparse_ext.text.identifiers import literal, quote_identifier
from streamfrom.sqlparse_ext.writes.completion import STATE, TableFacts


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import ShardName


_CONTROL: Final = frozenset({"priority", "time_next", "epoch", "time_acked"})
_FIRST_CONTROL: Final = frozenset({"time_next", "epoch", "time_created", "time_acked"})
_FIRST_ONLY: Final = frozenset({"time_scheduled", "time_created"})
NUMBER_TYPES: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint"}
    | {"decimal", "float", "double", "year"}
)
_INTEGER = re.compile(r"'?(-?\d+)'?", re.ASCII)
# The engine counts in its columns, or keeps nanoseconds since 1970 in them: these types hold neither.
_TEMPORAL: Final = frozenset({"date", "datetime", "timestamp", "time", "year"})
# A FLOAT does not equal its own text, and a BIT is sent as bytes that equal no number.
_INEXACT: Final = frozenset({"float", "float4", "float8", "double", "real", "bit"})
_SHORT: Final = frozenset({"tinyint", "smallint", "mediumint", "int"})
_DECIMAL = re.compile(r"decimal\((\d+)(?:,(\d+))?\)")
_TIME_DIGITS: Final = 19


@dataclass(frozen=True, slots=True)
class RawColumn:
    """A row of information_schema.columns. default is the text as the server shows it.

    column_type: the type in full, such as "decimal(20,0) unsigned".
    collation: of a text column; "" for others.
    """

    name: str
    data_type: str
    default: str | None
    nullable: bool
    extra: str = ""
    column_type: str = ""
    collation: str = ""

    @property
    def type(self) -> ColumnType:
        """Return the type by which stored forms are known."""
        return ColumnType(self.column_type or self.data_type, self.collation)


@dataclass(frozen=True, slots=True)
class RawIndex:
    """The rows of information_schema.statistics of one index."""

    name: str
    unique: bool
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RawTable:
    """The information_schema rows of a table whose comment has the mark.

    is_hidden: a DDL statement locks the definition, so only the table's name is known.
    is_partitioned: in whatever way.
    """

    name: str
    comment: str
    columns: tuple[RawColumn, ...]
    indexes: tuple[RawIndex, ...]
    is_hidden: bool = False
    is_partitioned: bool = False


@dataclass(frozen=True, slots=True)
class MessageTable:
    """A usable message table.

    columns: all columns, in the table's order.
    types: their types.
    streamed: the columns of ``STREAM *``, the id first.
    priority_nullable: rows with a NULL priority (read as 0) can exist.
    default_time_next_ns: the default of time_next; None for NULL.
    id_index: the index that finds a row by its id, for a hint; None without one.
    poll_index: the first layout's index on time_next, for a hint; None without one.
    key_column: the column with the message key; None without one.
    has_number_ids, has_number_keys: ids, keys are numbers, whose texts are SQL literals.
    key_type: the data type of its column, in lower case; "" without one.
    order_index: the index that finds the first message of a key, for a hint; None without one.
    key_index: the index that finds a key's message that is due soonest, for a hint; None without one.
    purge_index: the index on time_acked, for a hint; None without one.
    purge_by_schedule: the purge may use time_scheduled, the first layout's key.
    null_lane: an index finds rows with a NULL time_next.
    advice: sentences for `streamfrom check` and the log.
    visible: the columns of ``SELECT *``, which an INSERT without a column list fills.
    has_state: the table has a queue's column `state`, which follows from others.
    is_partitioned: in whatever way; `engine.messaging.upkeep.partitions` knows a queue's way.
    groups: the columns of `vt_group` and `vt_after`; None without groups.
    group_index: the index that finds a group's unacked members, for a hint; None without one.
    time_index: the index that finds unacked rows by their time, for a hint; None without one.
    facts: the facts with which `sqlparse_ext.writes.message_effects` reads and completes statements.
    """

    keyspace: str
    name: str
    properties: Properties
    columns: tuple[str, ...]
    streamed: tuple[str, ...]
    id_column: str
    has_number_ids: bool
    id_auto_increment: bool
    first_layout: bool
    priority_nullable: bool
    default_priority: int
    default_time_next_ns: int | None
    id_index: str | None
    poll_index: str | None
    purge_index: str | None
    purge_by_schedule: bool
    null_lane: bool
    advice: tuple[str, ...]
    visible: tuple[str, ...]
    types: tuple[ColumnType, ...] = ()
    has_state: bool = False
    is_partitioned: bool = False
    groups: tuple[str, str] | None = None
    group_index: str | None = None
    time_index: str | None = None
    key_column: str | None = None
    has_number_keys: bool = False
    key_type: str = ""
    order_index: str | None = None
    key_index: str | None = None
    facts: TableFacts = field(init=False, repr=False, compare=False)

    @property
    def has_priority(self) -> bool:
        """Return whether rows carry a priority; without one it is 0."""
        return not self.first_layout

    @property
    def named(self) -> dict[str, str]:
        """Return the table's fields of a log line."""
        return {"keyspace": self.keyspace, "queue": self.name}

    def named_on(self, shard: ShardName) -> dict[str, str]:
        """Return the fields of a log line about the table on a shard."""
        return {**self.named, "shard": shard}

    def __post_init__(self) -> None:
        facts = TableFacts(
            name=self.name,
            id_column=self.id_column.lower(),
            default_priority=self.default_priority,
            default_time_next_ns=self.default_time_next_ns,
            columns=frozenset(column.lower() for column in self.columns),
            first_layout=self.first_layout,
            id_auto_increment=self.id_auto_increment,
            by_primary=self.id_index == "PRIMARY" and self.has_number_ids,
            in_order=tuple(column.lower() for column in self.visible),
            has_state=self.has_state,
            is_lazy=self.properties.lease_delay_ns > 0,
            acks_early=self.properties.acks_early,
            refuses_delays=not self.properties.delayed,
            groups=frozenset(name.lower() for name in self.groups or ()),
            id_form=stored_form(self.type_of(self.id_column)),
        )
        # Every statement on the table needs them: making them again was a tenth of an ack.
        object.__setattr__(self, "facts", facts)

    def type_of(self, column: str) -> ColumnType | None:
        """Return the type of a column, named in any case; None if it is unknown."""
        for name, found in zip(self.columns, self.types, strict=False):
            if name.lower() == column.lower():
                return found
        return None

    def project(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """Return *columns* as the table spells them, or the streamed ones for None.

        Raises UnknownColumn for a name the table does not have.
        """
        if columns is None:
            return self.streamed
        known = {column.lower(): column for column in self.columns}
        for name in columns:
            if name.lower() not in known:
                raise UnknownColumn(name)
        return tuple(known[name.lower()] for name in columns)

    def id_literal(self, raw: bytes) -> bytes:
        """Return the key for an id as the text protocol sends it."""
        # Both sides of a comparison go through literal(), so that an id read by a poll and
        # the same id read from a statement are one key.
        return raw if self.has_number_ids else literal(raw)

    def key_literal(self, raw: bytes) -> bytes:
        """Return the literal of a key that is not NULL, as the text protocol sends it."""
        return raw if self.has_number_keys else literal(raw)


def load(keyspace: str, raw: RawTable, shards: int = 1) -> MessageTable | TableLoadError:
    """Return the table, or the first fault of its definition, which has the others.

    shards: how many the keyspace has.
    """
    try:
        return _load(keyspace, raw, shards)
    except CommentError as error:
        failure = TableLoadError(raw.name, str(error))
        failure.others = error.others
        return failure


def _load(keyspace: str, raw: RawTable, shards: int) -> MessageTable:
    columns = {column.name.lower(): column for column in raw.columns}
    first_layout = "priority" not in columns and columns.keys() >= _FIRST_ONLY
    wrong = _wrong_columns(raw, columns, first_layout=first_layout)
    try:
        properties = parse_comment(raw.comment)
    except CommentError as error:
        raise CommentError.of([str(error), *error.others, *wrong]) from None
    types = {name: column.data_type.lower() for name, column in columns.items()}
    faults = [
        naming_fault(raw.name, properties, columns),
        in_flight_fault(properties, shards),
        key_column.fault(properties, types, first_layout=first_layout),
    ]
    epoch = columns.get("epoch")
    if properties.in_order is not None and epoch is not None and epoch.nullable:
        faults.append("epoch must be NOT NULL where messages wait for others of their key")
    if not properties.delayed and _is_unknown_default(columns.get("time_next")):
        faults.append("time_next must have a number or NULL as default where vt_delayed is off")
    are_numbers = {name: kind in NUMBER_TYPES for name, kind in types.items()}
    faults += column_faults(properties.groups, are_numbers)
    wrong += [fault for fault in faults if fault is not None and fault not in wrong]
    if wrong:
        raise CommentError.of(wrong)
    ident, time_next = columns["id"], columns["time_next"]
    priority = columns.get("priority")
    groups = group_index = None
    if properties.groups is not None:
        group, after = (columns[name.lower()].name for name in properties.groups)
        groups, group_index = (group, after), _leading(raw, group.lower())
    by_time = ("time_next",) if first_layout else ("time_acked", "priority", "time_next")
    key = columns[properties.key.lower()] if properties.key is not None else None
    by_key = key_column.index_columns(properties)
    order_index, key_index = (
        _leading(raw, *by_key[name]) if name in by_key else None
        for name in (key_column.ORDER_INDEX, key_column.KEY_INDEX)
    )
    advice = _advice(raw, groups, by_key, first_layout=first_layout)
    return MessageTable(
        keyspace=keyspace,
        name=raw.name,
        properties=properties,
        columns=tuple(column.name for column in raw.columns),
        types=tuple(column.type for column in raw.columns),
        streamed=_streamed(raw, columns, properties, first_layout=first_layout),
        id_column=ident.name,
        has_number_ids=ident.data_type.lower() in NUMBER_TYPES,
        id_auto_increment="auto_increment" in ident.extra.lower(),
        first_layout=first_layout,
        priority_nullable=priority is not None and priority.nullable,
        default_priority=(_default(priority) or 0) if priority else 0,
        default_time_next_ns=_default(time_next),
        id_index=_leading(raw, "id", unique=True) or _leading(raw, "id"),
        poll_index=_leading(raw, "time_next") if first_layout else None,
        purge_index=_leading(raw, "time_acked"),
        purge_by_schedule=first_layout and _leading(raw, "time_scheduled") is not None,
        null_lane=not first_layout or _leading(raw, "time_acked") is not None,
        advice=(*advice, *properties.warnings),
        visible=tuple(
            column.name for column in raw.columns if "invisible" not in column.extra.lower()
        ),
        key_column=None if key is None else key.name,
        has_number_keys=key is not None and key.data_type.lower() in NUMBER_TYPES,
        key_type="" if key is None else key.data_type.lower(),
        order_index=order_index,
        key_index=key_index or order_index,
        has_state=(state := columns.get(STATE)) is not None
        and "virtual" in state.extra.lower(),
        is_partitioned=raw.is_partitioned,
        groups=groups,
        group_index=group_index,
        time_index=_leading(raw, *by_time),
    )


def _wrong_columns(
    raw: RawTable, columns: dict[str, RawColumn], *, first_layout: bool
) -> list[str]:
    """Return why no message of the table could be sent and acknowledged."""
    required = ["id", "priority", "time_next", "epoch", "time_acked"]
    if first_layout:
        required.remove("priority")
    wrong = [
        f"{name} missing from message table: {raw.name}"
        for name in required
        if name not in columns
    ]
    times = ["time_next", "time_acked", *(sorted(_FIRST_ONLY) if first_layout else ())]
    wrong += [
        f"{name} must be BIGINT, for nanoseconds since 1970, not {_type_of(columns[name])}:"
        f" {raw.name}"
        for name in times
        if name in columns
        and not (
            _holds_nanoseconds(columns[name])
            and (name == "time_acked" or _is_read_whole(columns[name]))
        )
    ]
    if "id" in columns and (fault := id_fault(raw.name, _type_of(columns["id"]))):
        wrong.append(fault)
    wrong += [
        f"{name} must be an integer, not {_type_of(columns[name])}: {raw.name}"
        for name in ("priority", "epoch")
        if name in columns and not _is_read_whole(columns[name])
    ]
    for name in ("time_next", "time_acked", "epoch"):
        extra = columns[name].extra.lower() if name in columns else ""
        if "virtual" in extra or "stored" in extra or "persistent" in extra:
            wrong.append(f"{name} must not be a generated column: {raw.name}")
    acked = columns.get("time_acked")
    if acked is not None and not acked.nullable:
        wrong.append(
            "time_acked must allow NULL, which is what a message has that is not acknowledged:"
            f" {raw.name}"
        )
    return wrong


def _type_of(column: RawColumn) -> str:
    return (column.column_type or column.data_type).upper()


def _holds_nanoseconds(column: RawColumn) -> bool:
    """Whether the column holds 19 digits, the nanoseconds of a present moment."""
    kind = column.data_type.lower()
    if kind == "decimal" and (size := _DECIMAL.match(column.column_type.lower())):
        return int(size[1]) - int(size[2] or 0) >= _TIME_DIGITS
    return kind not in _TEMPORAL and kind not in _SHORT


def _is_read_whole(column: RawColumn) -> bool:
    """Whether a server sends the column's values as integers, as the engine reads them."""
    kind = column.data_type.lower()
    if kind == "decimal" and (size := _DECIMAL.match(column.column_type.lower())):
        return int(size[2] or 0) == 0
    return kind not in _TEMPORAL and kind not in ("float", "double")


def id_fault(table: str, kind: str) -> str | None:
    """Return why an id of the type *kind* cannot be acknowledged, None if it can."""
    if kind.partition("(")[0].partition(" ")[0].lower() not in _INEXACT:
        return None
    return (
        f"id must be of a type whose values are found again, not {kind.upper()}: {table};"
        " use an integer, DECIMAL, CHAR, VARCHAR, BINARY or VARBINARY"
    )


def naming_fault(table: str, properties: Properties, columns: Collection[str]) -> str | None:
    """Return why `vt_message_cols` or `vt_dead_letter` names something unsuitable, None if not.

    columns: those of the table, in lower case.
    """
    if (properties.dead_letter or "").lower() == table.lower():
        return "vt_dead_letter must be another table"
    streamed = properties.message_cols or ("id",)
    for name in streamed:
        if name.lower() not in columns:
            return f"{name} missing from message table: {table}"
    if streamed[0].lower() != "id":
        return f"vt_message_cols must begin with id: {table}"
    return None


def _streamed(
    raw: RawTable,
    columns: dict[str, RawColumn],
    properties: Properties,
    *,
    first_layout: bool,
) -> tuple[str, ...]:
    if properties.message_cols is not None:
        return tuple(columns[name.lower()].name for name in properties.message_cols)
    hidden = _FIRST_CONTROL if first_layout else _CONTROL
    shown = [
        column.name
        for column in raw.columns
        # An INVISIBLE column is not part of `SELECT *` either.
        if column.name.lower() not in hidden and "invisible" not in column.extra.lower()
    ]
    others = [name for name in shown if name.lower() != "id"]
    return (columns["id"].name, *others)


def _default(column: RawColumn) -> int | None:
    """Return an integer default. MariaDB writes ``NULL`` as text and may quote numbers."""
    found = _INTEGER.fullmatch(column.default or "")
    return int(found[1]) if found else None


def _is_unknown_default(column: RawColumn | None) -> bool:
    return (
        column is not None
        and (column.default or "NULL").upper() != "NULL"
        and _default(column) is None
    )


def _leading(raw: RawTable, *names: str, unique: bool = False) -> str | None:
    """Return the name of an index that starts with columns *names*, a unique one on request.

    A unique one has only these columns, so that it finds one row. PRIMARY goes first.
    """
    fitting = [
        index.name
        for index in raw.indexes
        if tuple(column.lower() for column in index.columns[: len(names)]) == names
        and (not unique or (index.unique and len(index.columns) == len(names)))
    ]
    return min(fitting, key=lambda name: name != "PRIMARY", default=None)


def _advice(
    raw: RawTable,
    groups: tuple[str, str] | None,
    by_key: Mapping[str, tuple[str, ...]],
    *,
    first_layout: bool,
) -> list[str]:
    found = _type_advice(raw)

    def advise(consequence: str, name: str, columns: str, missing: str = "") -> None:
        found.append(
            f"no {missing or f'index on {columns}'}: {consequence};"
            f" ALTER TABLE {quote_identifier(raw.name)} ADD {name} ({columns})"
        )

    if _leading(raw, "id", unique=True) is None:
        advise("ids must be unique", "UNIQUE INDEX id_idx", "id", "unique index on id")
    if groups is not None and _leading(raw, groups[0].lower(), "time_acked") is None:
        advise(
            "each look at a group reads all of it, or the whole table",
            "INDEX group_idx",
            f"{quote_identifier(groups[0])}, time_acked",
            f"index on {groups[0]}, time_acked",
        )
    for name, columns in by_key.items():
        if _leading(raw, *columns) is None:
            advise(key_column.CONSEQUENCES[name], f"INDEX {name}", ", ".join(columns))
    by_time = ("time_acked", "priority", "time_next")
    if first_layout:
        if _leading(raw, "time_next") is None:
            advise(
                "polls read the whole table",
                "INDEX next_idx",
                "time_next, epoch",
                "index on time_next",
            )
        if _leading(raw, "time_scheduled") is None and _leading(raw, "time_acked") is None:
            advise("the purge reads the whole table", "INDEX acked_idx", "time_acked")
    elif _leading(raw, *by_time) is None:
        advise(
            "polls and the purge read the whole table", "INDEX poller_idx", ", ".join(by_time)
        )
    return found


def _type_advice(raw: RawTable) -> list[str]:
    """Return advice about definitions that work, but not as well or as long as they could."""
    found: list[str] = []
    for column in raw.columns:
        name, kind = column.name.lower(), column.data_type.lower()
        if name in ("time_next", "time_acked") and kind not in ("bigint", "decimal"):
            found.append(f"{name} is {_type_of(column)}: BIGINT is what moments are exact in")
        if name in ("priority", "epoch") and kind not in NUMBER_TYPES:
            found.append(
                f"{name} is {_type_of(column)}: as texts, 10 comes before 9; an integer is counted in"
            )
        if name == "time_next" and not column.nullable:
            found.append(
                "time_next is NOT NULL: an ack fails that does not give it a value;"
                f" ALTER TABLE {quote_identifier(raw.name)} MODIFY time_next BIGINT DEFAULT 0"
            )
        if name == "epoch" and kind in ("tinyint", "smallint"):
            found.append(
                f"epoch is {_type_of(column)}: a message that was sent so often is set aside"
            )
    return found
