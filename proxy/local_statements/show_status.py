"""SHOW STATUS, with the client's TLS and compression in place of the backend connection's. Pure.

By `Ssl_cipher` and `Ssl_version` a client learns whether others can listen, and by `Compression`
whether its packets are compressed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from streamfrom.proxy.wire.constants import Capability
from streamfrom.proxy.wire.resultset import parse_text_row, text_row
from streamfrom.sqlparse_ext.statements import Kind, Shape


_SCOPES: Final = frozenset({("SESSION",), ("LOCAL",)})


def is_session_status(shape: Shape) -> bool:
    """True for SHOW [SESSION] STATUS."""
    if shape.kind is not Kind.SHOW:
        return False
    words = shape.words
    if words[:1] in _SCOPES:
        words = words[1:]
    return words[:1] == ("STATUS",)


def own_status(tls: tuple[str, str], capabilities: int) -> dict[bytes, bytes]:
    """Return the variables that are about a client's connection, by lower-case name.

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
    """Return *rows*, a name and a value each, with what the client's connection has."""
    told = []
    for row in rows:
        name, value = parse_text_row(row, 2)
        told.append(text_row((name, own.get((name or b"").lower(), value))))
    return told
