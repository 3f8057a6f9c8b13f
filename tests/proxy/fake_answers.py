"""The replies that a `FakeServer` can be set to send, their packets, and a function that waits for a fact."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from streamfrom.proxy.wire.binary_rows import BinaryRows
from streamfrom.proxy.wire.constants import CHARSETS, FieldType
from streamfrom.proxy.wire.resultset import (
    ColumnDefinition,
    Tracker,
    column_definition,
    end_of_rows,
    err_packet,
    ok_packet,
    resultset_head,
    text_row,
)
from tests.proxy.wire.peers import encode_trackers, unframed


# A wait of this length counts as endless, however busy the machine is.
HANG_S = 60.0

# Collations that a server has besides those that the proxy itself knows.
MORE_CHARSETS = {
    28: ("gbk", "gbk_chinese_ci"),
    35: ("ucs2", "ucs2_general_ci"),
    58: ("cp1257", "cp1257_bin"),
}


@dataclass(frozen=True, slots=True)
class Ok:
    """Success, with the contents of an OK packet.

    names_its_id: the row named its id, so LAST_INSERT_ID() does not return it afterwards.
    """

    affected_rows: int = 0
    last_insert_id: int = 0
    names_its_id: bool = False
    warnings: int = 0
    info: bytes = b""
    trackers: tuple[Tracker, ...] = ()


@dataclass(frozen=True, slots=True)
class Error:
    """A refusal."""

    code: int
    message: str = "no"
    sqlstate: str = "HY000"


@dataclass(frozen=True, slots=True)
class Rows:
    """A result set; *then* ends it in the middle."""

    columns: tuple[str, ...]
    rows: tuple[tuple[bytes | None, ...], ...] = ()
    then: Error | None = None
    warnings: int = 0
    types: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Silence:
    """No reply until the statement is killed or *gate* opens; then *answer*."""

    gate: asyncio.Event | None = None
    answer: Ok | Error | Rows = Ok()


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection breaks after the first *after_bytes* of *answer*."""

    answer: Ok | Rows = Ok()
    after_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Bytes:
    """These bytes, unchanged."""

    data: bytes


Answer = Ok | Error | Rows | Silence | HangUp | Bytes


def rows_of(*values: object, column: str = "id") -> Rows:
    """One column with these values."""
    return Rows((column,), tuple((str(value).encode(),) for value in values))


async def until(fact: Callable[[], object]) -> None:
    """Let everything else run until *fact* is true."""
    async with asyncio.timeout(HANG_S):
        while not fact():  # noqa: ASYNC110 - facts of every kind, including those without an event
            await asyncio.sleep(0)


def collations_of(version: str, own: str) -> Rows:
    """The collations that a server of this version lists, *own* among them."""
    known = [
        (str(number), charset, collation, str(int(collation == own)))
        for number, (charset, collation) in {**CHARSETS, **MORE_CHARSETS}.items()
        if "MariaDB" not in version or "0900" not in collation
    ]
    return Rows(
        ("ID", "CHARACTER_SET_NAME", "COLLATION_NAME", "is_own"),
        tuple(tuple(value.encode() for value in values) for values in known),
        types=(
            FieldType.LONGLONG,
            FieldType.VAR_STRING,
            FieldType.VAR_STRING,
            FieldType.LONGLONG,
        ),
    )


def payloads_of(
    answer: Ok | Error | Rows, *, status: int, flags: int, is_binary: bool = False
) -> list[bytes]:
    """Return the payloads of the packets that encode *answer* for a client with these capabilities."""
    match answer:
        case Ok():
            return [
                ok_packet(
                    answer.affected_rows,
                    answer.last_insert_id,
                    status=status,
                    warnings=answer.warnings,
                    info=answer.info,
                    capabilities=flags,
                    session_state=encode_trackers(answer.trackers),
                )
            ]
        case Error():
            return [err_packet(answer.code, answer.sqlstate, answer.message, flags)]
        case Rows():
            types = answer.types or [FieldType.VAR_STRING] * len(answer.columns)
            definitions = [
                column_definition(ColumnDefinition(name, type=kind))
                for name, kind in zip(answer.columns, types, strict=True)
            ]
            head, _ = resultset_head(definitions, capabilities=flags, status=status)
            encode = BinaryRows(definitions).encode if is_binary else text_row
            return [
                *unframed(head),
                *map(encode, answer.rows),
                *(
                    payloads_of(answer.then, status=status, flags=flags)
                    if answer.then is not None
                    else [end_of_rows(flags, status=status, warnings=answer.warnings)]
                ),
            ]
