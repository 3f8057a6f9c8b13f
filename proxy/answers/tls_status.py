"""SHOW STATUS, which tells of the server's connection where it must tell of the client's: TLS. Pure.

`Ssl_cipher` and `Ssl_version` are what a client asks to know whether somebody can listen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proxy.wire.resultset import parse_text_row, text_row
from sqlparse_ext.statements import Kind


if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlparse_ext.statements import Shape


_SCOPES: Final = frozenset({("SESSION",), ("LOCAL",)})


def is_session_status(shape: Shape) -> bool:
    """True for SHOW [SESSION] STATUS."""
    if shape.kind is not Kind.SHOW:
        return False
    words = shape.words
    if words[:1] in _SCOPES:
        words = words[1:]
    return words[:1] == ("STATUS",)


def with_own_tls(rows: Iterable[bytes], cipher: str, version: str) -> list[bytes]:
    """Return *rows*, a name and a value each, with what the client's connection has."""
    own = {b"ssl_cipher": cipher.encode(), b"ssl_version": version.encode()}
    told = []
    for row in rows:
        name, value = parse_text_row(row, 2)
        told.append(text_row((name, own.get((name or b"").lower(), value))))
    return told
