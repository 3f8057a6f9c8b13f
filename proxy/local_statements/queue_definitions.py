"""CREATE, ALTER and DROP QUEUE as statements on an ordinary message table. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.table import key_column
from streamfrom.engine.messaging.table.groups import column_faults
from streamfrom.engine.messaging.table.setting_keys import KEYS
from streamfrom.engine.messaging.table.table_settings import (
    FORMER,
    MARK,
    CommentError,
    is_message_table,
    parse_comment,
    settings_of,
)
from streamfrom.engine.messaging.upkeep.dead_letter_table import OF_DELIVERY, with_consent
from streamfrom.engine.messaging.upkeep.partitions import (
    PARTITIONS_MAX,
    SPANS,
    RawPartition,
    partition_by,
    read_partitions,
)
from streamfrom.proxy.errors import BadQueue
from streamfrom.sqlparse_ext.stored_forms import ColumnType, folds_case, stored_form
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier, text_literal


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.reading.queues import QueueStatement
    from streamfrom.sqlparse_ext.statements import TableRef


# The settings of CREATE QUEUE unless WITH overrides them; seconds and counts as in
# the example in Vitess's manual, with larger batches.
DEFAULTS: Final = {
    "vt_ack_wait": "30",
    "vt_max_backoff": "3600",
    "vt_purge_after": "86400",
    "vt_batch_size": "100",
    "vt_cache_size": "10000",
    "vt_poller_interval": "1",
}
# RESUME removes the key altogether.
_SWITCHES: Final = {"PAUSE": ("vt_paused", "on"), "RESUME": ("vt_paused", None)}
# The suffix of the queue that `dead_letter = on` makes.
DEAD_SUFFIX: Final = "_dead"
# The longest comment of a table that servers accept (ER_TOO_LONG_TABLE_COMMENT).
_COMMENT_LENGTH_MAX: Final = 2048
_ID: Final = b"`id` BIGINT NOT NULL"
_COLUMNS: Final = (
    b"`priority` TINYINT NOT NULL DEFAULT 50",
    b"`epoch` BIGINT NOT NULL DEFAULT 0",
    b"`time_next` BIGINT DEFAULT 0",
    b"`time_acked` BIGINT DEFAULT NULL",
)
# Invisible, so that it is neither streamed nor expected by an INSERT without a column list.
_STATE: Final = (
    b"`state` VARCHAR(11) GENERATED ALWAYS AS (CASE WHEN `time_acked` IS NOT NULL THEN 'acked'"
    b" WHEN `epoch` > 0 THEN 'fired' ELSE 'to_be_fired' END) VIRTUAL INVISIBLE"
)
# A worker's reason for a failure. Also invisible, so that programs that name no columns work unchanged.
LAST_ERROR: Final = "last_error"
_LAST_ERROR: Final = b"`last_error` VARCHAR(1000) INVISIBLE DEFAULT NULL"
_KEYS_OF_TABLE: Final = (
    b"PRIMARY KEY (`id`)",
    b"KEY `poller_idx` (`time_acked`, `priority`, `time_next`)",
)
_DECLARED: Final = re.compile(r"\S+\s+(\w+)\s*(\([^)]*\))?(.*)", re.DOTALL)
_COLLATE: Final = re.compile(r"\bCOLLATE\s*=?\s*'?(\w+)", re.IGNORECASE)
_CHARSET: Final = re.compile(r"\b(?:CHARSET|CHARACTER\s+SET)\s*=?\s*'?(\w+)", re.IGNORECASE)
_BINARY: Final = re.compile(r"\s*BINARY\b", re.IGNORECASE)
_SYNONYMS: Final = {
    "integer": "int",
    "bool": "tinyint",
    "boolean": "tinyint",
    "numeric": "decimal",
    "dec": "decimal",
    "fixed": "decimal",
    "character": "char",
}
# For numbers Vitess uses `hash`, which accepts nothing else.
_NUMBERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
# A column is on its own line, as a server or `create_table` writes it.
_TYPED: Final = re.compile(r"^\s*(?:`([^`]+)`|(\w+))\s+(\w+)", re.MULTILINE)
_COMMENT: Final = re.compile(r"\bCOMMENT='((?:[^'\\]|''|\\.)*)'", re.DOTALL)


# The partitions in SHOW CREATE TABLE, after the options of the table.
_PARTITION_BY: Final = re.compile(r"^ ?(?:/\*!50100 )?PARTITION BY (\w+)[^(]*\(([^)]*)\)", re.M)
_PARTITION: Final = re.compile(r"^[ (]PARTITION `?(\w+)`? VALUES LESS THAN \(?(\w+)", re.M)


def create_table(queue: QueueStatement, comment: str, now_ns: int) -> bytes:
    """Return the CREATE TABLE IF NOT EXISTS for a CREATE QUEUE with the comment from `new_comment`, and with partitions from *now_ns* on.

    Raises BadQueue if a column is one of the queue's own, is repeated, or is another primary key; if the queue cannot have its partitions;
    or if groups are not columns of it.
    """
    names = [part.column.lower() for part in queue.parts if part.column is not None]
    for name in names:
        if name in OF_DELIVERY:
            raise BadQueue(f"column '{name}' is one that every queue has: leave it out")
    if any(part.has_primary_key for part in queue.parts):
        raise BadQueue("the primary key of a queue is its id: leave PRIMARY KEY out")
    last_error = () if LAST_ERROR in names else (_LAST_ERROR,)
    written = [part.text for part in queue.parts]
    created = made_queue(
        queue.table,
        b"" if "id" in names else _ID,
        [*written, *last_error],
        comment,
        (*key_indexes(comment), *group_index(queue, comment)),
    )
    if queue.partition_by is None:
        return created
    _check_partitioned(queue)
    check_partitions(queue.partition_by, comment)
    return created + b"\n" + partition_by(SPANS[queue.partition_by], now_ns)


def made_queue(
    table: TableRef,
    ident: bytes,
    written: Sequence[bytes],
    comment: str,
    keys: Sequence[bytes] = (),
) -> bytes:
    """Return the CREATE TABLE IF NOT EXISTS of a queue: *ident*, its own columns, the *written* definitions, and its indexes with *keys*.

    ident: the definition of the id; empty if it is among the written ones.
    """
    own_id = (ident,) if ident else ()
    parts = (*own_id, *_COLUMNS, *written, _STATE, *_KEYS_OF_TABLE, *keys)
    return b"CREATE TABLE IF NOT EXISTS %s (\n  %s\n) ENGINE=InnoDB COMMENT=%s" % (
        named(table),
        b",\n  ".join(parts),
        _quoted(comment),
    )


def _check_partitioned(queue: QueueStatement) -> None:
    for part in queue.parts:
        if part.column is not None and part.column.lower() == "id":
            raise BadQueue(
                "PARTITION BY is by the time that is in the ids that the proxy makes:"
                " leave the column 'id' out"
            )
        if part.is_unique_without_id:
            shown = part.text.decode("utf-8", "replace")
            raise BadQueue(
                f"a unique index of a queue with PARTITION BY must contain id: '{_shown(shown)}'"
            )


def check_partitions(unit: str | None, comment: str) -> None:
    """Raise BadQueue if a queue that is partitioned by *unit* would have too many partitions."""
    if unit not in SPANS:
        return
    count = SPANS[unit].count(parse_comment(comment).purge_after_ns)
    if count > PARTITIONS_MAX:
        raise BadQueue(
            f"PARTITION BY {unit} with this purge_after is {count} partitions, more than"
            f" {PARTITIONS_MAX}"
        )


def partition_unit(definition: str) -> str | None:
    """Return HOUR or DAY for a table that is partitioned like a queue, None for one without partitions.

    For other partitioning, return the server's word, such as HASH.
    """
    options = definition[definition.rfind("\n)") :]
    by = _PARTITION_BY.search(options)
    if by is None:
        return None
    found = [
        RawPartition(match[1], by[1], by[2], match[2])
        for match in _PARTITION.finditer(options, by.end())
    ]
    partitions = read_partitions(found, "id")
    return by[1] if partitions is None else partitions.span.unit


def alter_table(table: TableRef, comment: str) -> bytes:
    """Return the ALTER TABLE that sets a comment that was `checked`."""
    return b"ALTER TABLE %s COMMENT=%s" % (named(table), _quoted(comment))


def drop_table(queue: QueueStatement) -> bytes:
    """Return the DROP TABLE IF EXISTS for a DROP QUEUE."""
    return b"DROP TABLE IF EXISTS " + named(queue.table)


def show_create_table(table: TableRef) -> bytes:
    """Return the SHOW CREATE TABLE of a queue."""
    return b"SHOW CREATE TABLE " + named(table)


def new_comment(queue: QueueStatement, shard_by: tuple[str, str] | None = None) -> str:
    """Return the comment for a CREATE QUEUE. Raises BadQueue for an impossible setting.

    shard_by: the vindex and the column for the comment, if the vschema does not name the table.
    """
    has_own_id = any(part.column and part.column.lower() == "id" for part in queue.parts)
    auto_id = () if has_own_id else (("vt_auto_id", "on"),)
    sharding = () if shard_by is None else (("vt_shard_by", "{}({})".format(*shard_by)),)
    return _with_settings(MARK, (*DEFAULTS.items(), *auto_id, *sharding, *_settings(queue)))


def changed_comment(queue: QueueStatement, comment: str) -> str:
    """Return *comment* with the settings of an ALTER QUEUE. Raises BadQueue for an impossible one."""
    return _with_settings(comment, _settings(queue))


def sharding(queue: QueueStatement, collation: str) -> tuple[str, str]:
    """Return the vindex and the column that shard a CREATE QUEUE's rows: by default those of its id.

    collation: the database's. Raises BadQueue if SHARD BY names no column of the queue, or one whose values cannot be mapped to shards.
    """
    vindex, column = queue.shard_by or (None, "id")
    definition = _ID if column.lower() == "id" else None
    for part in queue.parts:
        if part.column is not None and part.column.lower() == column.lower():
            definition = part.text
    if definition is None:
        raise BadQueue(f"SHARD BY names no column of the queue: '{_shown(column)}'")
    kind = declared_type(definition.decode("utf-8", "replace"), collation)
    if fault := stored_form(kind, folds=vindex is None).fault:
        raise BadQueue(f"column '{column}' places the rows over shards: {fault}")
    if vindex is None and kind.text in _NUMBERS:
        vindex = "hash"
    # Texts that are equal in the collation must be on the same shard.
    return vindex or ("unicode_loose_xxhash" if folds_case(kind) else "xxhash"), column


def declared_type(definition: str, collation: str) -> ColumnType:
    """Return the type of a column from its *definition* in CREATE QUEUE, without attributes of numbers.

    collation: the database's.
    """
    found = _DECLARED.match(definition)
    if found is None:
        return ColumnType("")
    name, size, rest = found[1].lower(), found[2] or "", found[3]
    name = _SYNONYMS.get(name, name)
    if name in _NUMBERS:
        return ColumnType(name)
    if (charset := _CHARSET.search(rest)) is not None:
        collation = f"{charset[1]}_general_ci"
    if _BINARY.match(rest):
        collation = "utf8mb4_bin"
    if (named := _COLLATE.search(rest)) is not None:
        collation = named[1]
    return ColumnType(name + size, collation.lower())


def comment_in(definition: str) -> str:
    """Return the comment of a table from SHOW CREATE TABLE's *definition*; empty for none."""
    # The line with the table's own options comes after the columns.
    options = definition[definition.rfind("\n)") :]
    found = _COMMENT.search(options)
    if found is None:
        return ""
    return re.sub(r"''|\\(.)", lambda match: match[1] or "'", found[1])


def key_indexes(comment: str) -> tuple[bytes, ...]:
    """Return the indexes for the keys of the settings in *comment*, as in CREATE TABLE.

    A comment that cannot be used needs none.
    """
    try:
        found = key_column.index_definitions(parse_comment(comment))
    except CommentError:
        return ()
    return tuple(each.encode() for each in found)


def column_types(definition: str) -> dict[str, str]:
    """Return the types of the columns in CREATE TABLE's *definition*, by name, all in lower case."""
    return {
        (quoted or name).lower(): kind.lower()
        for quoted, name, kind in _TYPED.findall(definition)
    }


def is_queue(definition: str) -> bool:
    """Return whether SHOW CREATE TABLE's *definition* is that of a message table."""
    return is_message_table(comment_in(definition))


def _settings(queue: QueueStatement) -> list[tuple[str, str | None]]:
    if queue.verb in _SWITCHES:
        return [_SWITCHES[queue.verb]]
    found = []
    for key, value in queue.settings:
        full = f"vt_{key}"
        if full == "vt_shard_by":
            raise BadQueue("shard_by is written SHARD BY vindex(column), and stays as it is")
        if full in FORMER:
            raise BadQueue(f"{key} is called {FORMER[full].removeprefix('vt_')} now")
        if full not in KEYS:
            near = difflib.get_close_matches(full.replace("vt_vt_", "vt_"), KEYS, n=1)
            hint = f"; did you mean {near[0].removeprefix('vt_')}?" if near else ""
            raise BadQueue(f"unknown setting '{_shown(key)}' of a queue{hint}")
        if value is not None and (not value.strip() or any(sign in value for sign in ",='\\")):
            raise BadQueue(f"{key} cannot be '{_shown(value)}'")
        text = DEFAULTS.get(full) if value is None else value.strip()
        if full == "vt_dead_letter" and text is not None and text.lower() == "on":
            text = queue.table.name + DEAD_SUFFIX
        found.append((full, text))
    return found


def _with_settings(comment: str, settings: Iterable[tuple[str, str | None]]) -> str:
    pieces = [piece.strip() for piece in comment.split(",")]
    for key, value in settings:
        at = [place for place, piece in enumerate(pieces) if _key(piece) == key]
        # Remove all but the first, because the last of several would be in force.
        for place in reversed(at[1:] if value is not None else at):
            del pieces[place]
        if value is not None and at:
            pieces[at[0]] = f"{key}={value}"
        elif value is not None:
            pieces.append(f"{key}={value}")
    changed = ",".join(pieces)
    try:
        parse_comment(changed)
    except CommentError as error:
        raise BadQueue(str(error)) from None
    return checked(changed)


def checked(comment: str) -> str:
    """Return *comment*. Raises BadQueue if it cannot be written."""
    if "\\" in comment:
        raise BadQueue("a comment with a backslash in it is changed by ALTER TABLE … COMMENT")
    if len(comment) > _COMMENT_LENGTH_MAX:
        raise BadQueue(
            f"the settings are longer than the {_COMMENT_LENGTH_MAX} characters of a comment"
        )
    return comment


def _key(piece: str) -> str:
    return piece.partition("=")[0].strip()


def _shown(text: str) -> str:
    return text[:40].encode("ascii", "replace").decode()


def named(table: TableRef) -> bytes:
    """Return a table's name as in SQL, with its schema if it has one."""
    names = [name for name in (table.schema, table.name) if name is not None]
    return ".".join(map(quote_identifier, names)).encode("utf-8", "surrogateescape")


def _quoted(comment: str) -> bytes:
    return b"'" + comment.replace("'", "''").encode("utf-8", "surrogateescape") + b"'"


# Clients spell types in many ways.
_NUMBER: Final = re.compile(
    r"\S+\s+`?(?:(?:TINY|SMALL|MEDIUM|BIG)?INT|DEC|NUMERIC|FIXED|FLOAT|DOUBLE|REAL|BOOL|YEAR)",
    re.IGNORECASE,
)
_INDEX: Final = b"`group_idx`"


def group_index(queue: QueueStatement, comment: str) -> tuple[bytes, ...]:
    """Return the index that a CREATE QUEUE with *comment* makes for its groups; empty without groups, or if it already has one.

    Raises BadQueue if a setting does not name a column of the queue.
    """
    if not settings_of(comment).get("vt_group"):
        return ()
    groups = parse_comment(comment).groups
    columns = {
        part.column.lower(): _is_number(part.text.decode("utf-8", "replace"))
        for part in queue.parts
        if part.column is not None
    }
    for fault in column_faults(groups, columns):
        raise BadQueue(fault)
    # SHOW CREATE QUEUE prints it as an index like any other.
    if groups is None or any(_INDEX in part.text for part in queue.parts):
        return ()
    name = quote_identifier(groups[0]).encode("utf-8", "surrogateescape")
    return (b"KEY %b (%b, `time_acked`)" % (_INDEX, name),)


def _is_number(text: str) -> bool:
    return _NUMBER.match(text) is not None


# --- the queue made by `dead_letter = on`: NAME_dead, with the queue's columns and the reason of each failure ---

_OF_DEATH: Final = {
    "dead_time": b"`dead_time` BIGINT DEFAULT NULL",
    "dead_reason": b"`dead_reason` VARCHAR(1000) DEFAULT NULL",
    "dead_attempts": b"`dead_attempts` INT DEFAULT NULL",
}
_ASK_COLUMNS: Final = (
    b"SELECT column_name, column_type, collation_name FROM information_schema.columns"
    b" WHERE table_schema = %b AND table_name = %b ORDER BY ordinal_position"
)


def ask_columns(database: str, table: str) -> str:
    """Return the query for the columns of a queue, whose rows `create_dead_letters` takes."""
    return (_ASK_COLUMNS % (text_literal(database), text_literal(table))).decode()


def create_dead_letters(
    table: TableRef,
    queue: str,
    columns: Sequence[tuple[object, ...]],
    placed_by: tuple[str, str] | None,
) -> bytes:
    """Return the CREATE TABLE IF NOT EXISTS of *table*, which takes the dead letters of *queue*.

    A column has the queue's type, but not its constraints or default, so that every dead letter fits.

    placed_by: vindex and column that shard both queues; None in an unsharded keyspace.
    """
    ident = b""
    parts: list[bytes] = []
    known = {str(name).lower() for name, *_ in columns}
    for name, kind, collation in columns:
        lower = str(name).lower()
        text = f"{quote_identifier(str(name))} {kind}"
        if collation is not None:
            text += f" COLLATE {collation}"
        if lower == "id":
            ident = f"{text} NOT NULL".encode("utf-8", "surrogateescape")
        elif lower not in OF_DELIVERY:
            hidden = " INVISIBLE" if lower == "last_error" else ""
            text += f"{hidden} DEFAULT NULL"
            parts.append(text.encode("utf-8", "surrogateescape"))
    parts += [part for name, part in _OF_DEATH.items() if name not in known]
    settings = [f"{key}={value}" for key, value in DEFAULTS.items()]
    if placed_by is not None:
        settings.append("vt_shard_by={}({})".format(*placed_by))
    comment = with_consent(",".join((MARK, *settings)), queue)
    return made_queue(table, ident, parts, comment)


def is_made_for(comment: str, queue: str) -> bool:
    """Return whether *comment*, of *queue*, names the queue that `dead_letter = on` made."""
    return settings_of(comment).get("vt_dead_letter") == queue + DEAD_SUFFIX
