"""SHOW PROCESSLIST: the clients of the proxy under the ids that KILL takes. Pure.

A user sees their own connections, as a user without the privilege PROCESS does on a server; one of
role admin sees all. These are the connections that they may KILL. SHOW STATUS has the TLS and compression of the client's
connection instead of the backend's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from streamfrom.proxy.wire.constants import BINARY_CHARSET, Capability, FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, parse_text_row, text_row
from streamfrom.sqlparse_ext.statements import Kind, Shape


# https://dev.mysql.com/doc/refman/8.4/en/show-processlist.html
_COLUMNS: Final = (
    ColumnDefinition("Id", type=FieldType.LONGLONG, length=21),
    ColumnDefinition("User", length=128),
    ColumnDefinition("Host", length=1020),
    ColumnDefinition("db", length=256),
    ColumnDefinition("Command", length=64),
    ColumnDefinition("Time", type=FieldType.LONG, length=7),
    ColumnDefinition("State", length=120),
    ColumnDefinition("Info", length=400),
)
# https://mariadb.com/kb/en/progress-reporting/
_PROGRESS: Final = ColumnDefinition(
    "Progress", charset=BINARY_CHARSET, type=FieldType.DOUBLE, length=7, decimals=3
)
_INFO_CHARACTERS: Final = 100
_FORMS: Final = frozenset({("PROCESSLIST",), ("FULL", "PROCESSLIST")})


@dataclass(frozen=True, slots=True)
class Process:
    """One connected client."""

    connection_id: int
    user: str
    host: str
    target: str | None  # the current target of the session
    command: str  # the current command, as servers name it: Query, Execute, Sleep, …
    time_s: int  # the seconds since the command began
    state: str
    info: bytes | None  # the text of the current statement, None without one


def is_processlist(shape: Shape) -> bool:
    """Return whether *shape* is SHOW [FULL] PROCESSLIST."""
    return shape.words in _FORMS and shape.verb == "SHOW"


def columns(*, on_mariadb: bool) -> tuple[ColumnDefinition, ...]:
    """Return the columns as on MariaDB or MySQL."""
    return (*_COLUMNS, _PROGRESS) if on_mariadb else _COLUMNS


def rows(
    shape: Shape, processes: Iterable[Process], *, on_mariadb: bool
) -> list[tuple[bytes | None, ...]]:
    """Return the rows below `columns`, ordered by id; without FULL the text is cut."""
    progress = (b"0.000",) if on_mariadb else ()
    limit = None if "FULL" in shape.words else _INFO_CHARACTERS
    return [
        (
            b"%d" % process.connection_id,
            process.user.encode(),
            process.host.encode(),
            None if process.target is None else process.target.encode(),
            process.command.encode(),
            b"%d" % process.time_s,
            process.state.encode(),
            None if process.info is None else _cut(process.info, limit),
            *progress,
        )
        for process in sorted(processes, key=lambda process: process.connection_id)
    ]


def _cut(text: bytes, limit: int | None) -> bytes:
    """Return the first *limit* characters, without bytes that are not text."""
    return text.decode("utf-8", "replace")[:limit].encode()


_SCOPES: Final = frozenset({("SESSION",), ("LOCAL",)})


def is_session_status(shape: Shape) -> bool:
    """Return whether *shape* is SHOW [SESSION] STATUS."""
    if shape.kind is not Kind.SHOW:
        return False
    words = shape.words
    if words[:1] in _SCOPES:
        words = words[1:]
    return words[:1] == ("STATUS",)


def own_status(tls: tuple[str, str], capabilities: int) -> dict[bytes, bytes]:
    """Return the variables about a client's connection, by lower-case name.

    tls: the cipher and the version of TLS, both empty without TLS. capabilities: the client's flags.
    """
    cipher, version = tls
    packs = (
        b"zlib"
        if capabilities & Capability.COMPRESS
        else b"zstd"
        if capabilities & Capability.ZSTD_COMPRESSION
        else b""
    )
    return {
        b"ssl_cipher": cipher.encode(),
        b"ssl_version": version.encode(),
        b"compression": b"ON" if packs else b"OFF",
        b"compression_algorithm": packs,
    }


def with_own_status(rows: Iterable[bytes], own: Mapping[bytes, bytes]) -> list[bytes]:
    """Return *rows*, a name and a value each, with the values in *own* in place of the server's."""
    told = []
    for row in rows:
        name, value = parse_text_row(row, 2)
        told.append(text_row((name, own.get((name or b"").lower(), value))))
    return told
