"""SHOW QUEUES and SHOW CREATE QUEUE. Pure: turns table definitions back into CREATE QUEUE statements."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from streamfrom.engine.messaging.table.setting_keys import KEYS
from streamfrom.engine.messaging.table.table_settings import settings_of
from streamfrom.engine.messaging.upkeep.partitions import SPANS
from streamfrom.proxy.errors import BadQueue
from streamfrom.proxy.local_statements.queue_definitions import (
    DEAD_SUFFIX,
    comment_in,
    key_indexes,
    partition_unit,
)
from streamfrom.proxy.local_statements.show_keyspaces import like_pattern
from streamfrom.sqlparse_ext.errors import SqlError
from streamfrom.sqlparse_ext.statements import Kind, Shape, Slot, Statement
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier
from streamfrom.sqlparse_ext.text.tokens import Cursor, statement_tokens


# How a server rewrites the SQL of CREATE QUEUE: without widths of integers, without quotes around
# numbers, without character sets.
_NOISE: Final = re.compile(
    r"(?<=int)\(\d+\)| CHARACTER SET \w+| COLLATE \w+| USING BTREE| /\*!80023 INVISIBLE \*/| INVISIBLE"
    r"|(?<=DEFAULT )'(?=\d+')|(?<=\d)'$"
)
_POLLER: Final = "KEY `poller_idx` (`time_acked`,`priority`,`time_next`)"
_OWN_LINES: Final = frozenset(
    {
        "`priority` tinyint NOT NULL DEFAULT 50",
        "`epoch` bigint NOT NULL DEFAULT 0",
        "`time_next` bigint DEFAULT 0",
        "`time_acked` bigint DEFAULT NULL",
        "PRIMARY KEY (`id`)",
        _POLLER,
    }
)
# As in Vitess.
_POLLER_DESCENDING: Final = _POLLER.replace("`)", "` DESC)")
_OWN_ID: Final = "`id` bigint NOT NULL"
_OWN_LAST_ERROR: Final = "`last_error` varchar(1000) DEFAULT NULL"
_STATE: Final = "`state` "


def is_show_queues(shape: Shape) -> bool:
    """Return whether *shape* is SHOW QUEUES or SHOW CREATE QUEUE."""
    is_queues = shape.kind is Kind.SHOW and shape.words[:1] == ("QUEUES",)
    return is_queues or is_show_create_queue(shape)


def is_show_create_queue(shape: Shape) -> bool:
    """Return whether *shape* is SHOW CREATE QUEUE."""
    return shape.kind is Kind.SHOW and shape.words[:2] == ("CREATE", "QUEUE")


def show_queues(statement: Statement, tables: Iterable[str]) -> list[str]:
    """Return the *tables* that SHOW QUEUES [FROM ks] [LIKE '…'] selects, in order. Raises SqlError for another form."""
    template = statement.shape.template
    cursor = Cursor(statement_tokens(template), template, 2)
    if cursor.accept_any({"FROM", "IN"}):
        cursor.name()
    pattern = "%"
    if cursor.accept("LIKE"):
        slot = cursor.take().slot
        pattern = statement.text(slot) or "" if isinstance(slot, Slot) else ""
    if cursor.key:
        raise SqlError("SHOW QUEUES takes FROM a keyspace, LIKE a pattern, and nothing else")
    matches = like_pattern(pattern).fullmatch
    return sorted(name for name in tables if matches(name))


def create_queue(name: str, definition: str) -> str:
    """Return the CREATE QUEUE for a message table with *definition*, from SHOW CREATE TABLE. Raises BadQueue if there is none."""
    lines = definition.split("\n")
    end = next(at for at, line in enumerate(lines) if line.startswith(")"))
    parts = [line.strip().removesuffix(",") for line in lines[1:end]]
    own = {_NOISE.sub("", part): part for part in parts}
    own = {line.replace(_POLLER_DESCENDING, _POLLER): part for line, part in own.items()}
    states = [part for part in parts if part.startswith(_STATE)]
    unit = partition_unit(definition)
    if (
        not own.keys() >= _OWN_LINES
        or len(states) != 1
        or "time_acked" not in states[0]
        or not (unit is None or unit in SPANS)
    ):
        raise BadQueue(
            f"table '{name}' is no queue that CREATE QUEUE makes; SHOW CREATE TABLE shows it"
        )
    dropped = {own[line] for line in _OWN_LINES} | set(states)
    if "INVISIBLE" in own.get(_OWN_LAST_ERROR, ""):
        dropped.add(own[_OWN_LAST_ERROR])
    # An id made by CREATE QUEUE is the first column; one that a client wrote comes after the queue's own columns.
    makes_id = _NOISE.sub("", parts[0]) == _OWN_ID
    if makes_id:
        dropped.add(parts[0])
    dropped |= {
        each.decode().replace(", ", ",") for each in key_indexes(comment_in(definition))
    }
    body = ",\n".join(f"  {part}" for part in parts if part not in dropped)
    settings = settings_of(comment_in(definition))
    shard_by = settings.pop("vt_shard_by", None)
    if makes_id:
        settings.setdefault("vt_auto_id", "off")  # otherwise CREATE QUEUE would turn it on
    text = f"CREATE QUEUE {quote_identifier(name)} (\n{body}\n)"
    if shard_by:
        text += f" SHARD BY {shard_by}"
    if unit is not None:
        text += f" PARTITION BY {unit}"
    pairs = [
        f"{key.removeprefix('vt_')} = {_value(_setting(name, key, value))}"
        for key, value in settings.items()
        if key in KEYS
    ]
    return text + (f"\nWITH ({', '.join(pairs)})" if pairs else "")


def _setting(queue: str, key: str, value: str) -> str:
    return "on" if (key, value) == ("vt_dead_letter", queue + DEAD_SUFFIX) else value


def _value(text: str) -> str:
    return (
        text if re.fullmatch(r"[0-9.]+|[a-z]+", text) else "'" + text.replace("'", "''") + "'"
    )
