"""From a column's value to the keyspace id that owns it, byte for byte as Vitess computes it.

A vindex is pure and unique here: one value, one keyspace id, or None where the value belongs
to no shard.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from xxhash import xxh64_intdigest

from streamfrom.engine.errors import VindexError
from streamfrom.engine.sharding.unicode_weights import loose_key
from streamfrom.sqlparse_ext.literal_values import Number


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Value


_INTEGER = re.compile(rb"[+-]?[0-9]+")
_LEAST, _BEYOND = -(2**63), 2**64


@dataclass(frozen=True, slots=True)
class Vindex:
    """Computes keyspace ids.

    type: its name in Vitess.
    map: returns the keyspace id of a value, or None when no shard owns it.
    """

    type: str
    map: Callable[[Value], bytes | None]


def is_of_strings(vindex: object) -> bool:
    """True for a vindex whose columns hold strings, which a server compares with numbers by value.

    '05' = 5 is true there, and '05' and '5' have different keyspace ids. An ``xxhash`` is not
    taken for one: integers are often placed by it.
    """
    return isinstance(vindex, Vindex) and vindex.type in {"binary", "binary_md5", *_LOOSE}


def is_loose(vindex: object) -> bool:
    """True for a vindex of collated text, which maps only the characters whose weights are known here."""
    return isinstance(vindex, Vindex) and vindex.type in _LOOSE


def make_vindex(vindex_type: str) -> Vindex:
    """Return the vindex of this type; VindexError for a type that is not known."""
    try:
        return Vindex(vindex_type, _MAPS[vindex_type])
    except KeyError:
        raise VindexError(f'vindexType "{vindex_type}" not found') from None


# Three DES rounds with one key are one round, and OpenSSL keeps single DES in a
# legacy provider. ECB has no state, so one encryptor serves all.
_ENCRYPT: Final = Cipher(TripleDES(bytes(24)), modes.ECB()).encryptor().update  # noqa: S305


def _hash(value: Value) -> bytes | None:
    """Return the integer, big-endian, DES-encrypted with the null key."""
    number = _integer(value)
    if number is None or not _LEAST <= number < _BEYOND:
        return None
    # The modulo makes the two's complement of a negative number.
    return _ENCRYPT((number % _BEYOND).to_bytes(8, "big"))


def _numeric(value: Value) -> bytes | None:
    """Return the unsigned integer, big-endian."""
    number = _unsigned(value)
    return None if number is None else number.to_bytes(8, "big")


def _reverse_bits(value: Value) -> bytes | None:
    """Return the unsigned integer with its 64 bits in reverse, big-endian."""
    number = _unsigned(value)
    return None if number is None else int(f"{number:064b}"[::-1], 2).to_bytes(8, "big")


def _binary(value: Value) -> bytes:
    """Return the value as the text of the protocol; NULL is empty.

    The empty string has the empty id, as in Vitess, which is the first shard's; a SELECT from the vindex
    shows no row for it, here and there.
    """
    match value:
        case None:
            return b""
        case bytes():
            return value
        case int():
            return b"%d" % value
        case Number():
            return value.text.encode()


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _xxhash(data: bytes) -> bytes:
    # XXH64 is written big-endian elsewhere. Vitess writes it little-endian, and rows are
    # where Vitess put them.
    return xxh64_intdigest(data).to_bytes(8, "little")


def _of_loose_key(digest: Callable[[bytes], bytes]) -> Callable[[Value], bytes | None]:
    """Return what digests a text's primary collation key, if that is known (`engine.sharding.unicode_weights`)."""

    def digested(value: Value) -> bytes | None:
        try:
            key = loose_key(_binary(value).decode())
        except UnicodeDecodeError:
            return None
        return None if key is None else digest(key)

    return digested


_LOOSE: Final = {
    "unicode_loose_md5": _of_loose_key(_md5),
    "unicode_loose_xxhash": _of_loose_key(_xxhash),
}
_MAPS: Final[dict[str, Callable[[Value], bytes | None]]] = {
    "hash": _hash,
    "numeric": _numeric,
    "reverse_bits": _reverse_bits,
    "binary": _binary,
    "binary_md5": lambda value: _md5(_binary(value)),
    "null": lambda _: b"\0",  # everything on the first shard
    "xxhash": lambda value: _xxhash(_binary(value)),
    **_LOOSE,
}


def _integer(value: Value) -> int | None:
    """Return an integer, also one written as a string; None for anything else."""
    if isinstance(value, int):
        return value
    if isinstance(value, bytes) and _INTEGER.fullmatch(value):
        return int(value)
    return None


def _unsigned(value: Value) -> int | None:
    number = _integer(value)
    # Vitess refuses a negative number here, where `hash` takes it.
    return number if number is not None and 0 <= number < _BEYOND else None
