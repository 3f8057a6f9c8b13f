"""From a column's value to the keyspace id that owns it, byte for byte as Vitess computes it.

A vindex is pure and unique here: one value, one keyspace id, or None where the value belongs
to no shard.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

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


class Vindex(Protocol):
    """Computes keyspace ids."""

    def map(self, value: Value) -> bytes | None:
        """Return the keyspace id of *value*, or None when no shard owns it."""


def is_of_strings(vindex: Vindex) -> bool:
    """True for a vindex whose columns hold strings, which a server compares with numbers by value.

    '05' = 5 is true there, and '05' and '5' have different keyspace ids. An ``xxhash`` is not
    taken for one: integers are often placed by it.
    """
    return isinstance(vindex, _OF_STRINGS)


def is_loose(vindex: Vindex) -> bool:
    """True for a vindex of collated text, which maps only the characters whose weights are known here."""
    return isinstance(vindex, UnicodeLooseMd5 | UnicodeLooseXxHash)


def make_vindex(vindex_type: str, params: Mapping[str, str]) -> Vindex:
    """Return the vindex of this type; VindexError for a type that is not known.

    *params* are for types that take any; those that take none ignore them, as in Vitess.
    """
    make = _TYPES.get(vindex_type)
    if make is None:
        raise VindexError(f'vindexType "{vindex_type}" not found')
    return make(params)


class Hash:
    """``hash``: the integer, big-endian, DES-encrypted with the null key."""

    def __init__(self, _params: Mapping[str, str]) -> None:
        # Three DES rounds with one key are one round, and OpenSSL keeps single DES in a
        # legacy provider. ECB has no state, so one encryptor serves all.
        self._encrypt = Cipher(TripleDES(bytes(24)), modes.ECB()).encryptor()  # noqa: S305

    def map(self, value: Value) -> bytes | None:
        """Return 8 bytes; negative numbers count as their two's complement."""
        number = _integer(value)
        if number is None or not _LEAST <= number < _BEYOND:
            return None
        # The modulo makes the two's complement of a negative number.
        return self._encrypt.update((number % _BEYOND).to_bytes(8, "big"))


class Numeric:
    """``numeric``: the unsigned integer, big-endian."""

    def __init__(self, _params: Mapping[str, str]) -> None:
        pass

    def map(self, value: Value) -> bytes | None:
        """Return 8 bytes."""
        number = _unsigned(value)
        return None if number is None else number.to_bytes(8, "big")


class ReverseBits:
    """``reverse_bits``: the unsigned integer with its 64 bits in reverse, big-endian."""

    def __init__(self, _params: Mapping[str, str]) -> None:
        pass

    def map(self, value: Value) -> bytes | None:
        """Return 8 bytes."""
        number = _unsigned(value)
        return None if number is None else int(f"{number:064b}"[::-1], 2).to_bytes(8, "big")


class Binary:
    """``binary``: the value's bytes as they are; NULL is the empty string.

    The empty string has the empty id, as in Vitess, which is the first shard's; a SELECT from the vindex
    shows no row for it, here and there.
    """

    def __init__(self, _params: Mapping[str, str]) -> None:
        pass

    def map(self, value: Value) -> bytes | None:
        """Return the bytes."""
        return _bytes(value)


class BinaryMd5:
    """``binary_md5``: the MD5 of the value's bytes."""

    def __init__(self, _params: Mapping[str, str]) -> None:
        pass

    def map(self, value: Value) -> bytes | None:
        """Return 16 bytes."""
        return hashlib.md5(_bytes(value), usedforsecurity=False).digest()


class XxHash:
    """``xxhash``: the XXH64 of the value's bytes, a number's being its decimal digits."""

    def __init__(self, _params: Mapping[str, str]) -> None:
        pass

    def map(self, value: Value) -> bytes | None:
        """Return 8 bytes, little-endian as in Vitess."""
        # XXH64 is written big-endian elsewhere. Vitess writes it little-endian, and rows are
        # where Vitess put them.
        return xxh64_intdigest(_bytes(value)).to_bytes(8, "little")


class UnicodeLooseMd5:
    """``unicode_loose_md5``: the MD5 of the text's primary collation key."""

    def __init__(self, _params: Mapping[str, str]) -> None:
        pass

    def map(self, value: Value) -> bytes | None:
        """Return 16 bytes; None for text whose key is not known (`engine.sharding.unicode_weights`)."""
        key = _loose_key(value)
        return None if key is None else hashlib.md5(key, usedforsecurity=False).digest()


class UnicodeLooseXxHash:
    """``unicode_loose_xxhash``: the XXH64 of the text's primary collation key."""

    def __init__(self, _params: Mapping[str, str]) -> None:
        pass

    def map(self, value: Value) -> bytes | None:
        """Return 8 bytes, little-endian; None for text whose key is not known."""
        key = _loose_key(value)
        return None if key is None else xxh64_intdigest(key).to_bytes(8, "little")


_OF_STRINGS: Final = (Binary, BinaryMd5, UnicodeLooseMd5, UnicodeLooseXxHash)


class Null:
    """``null``: everything on the first shard."""

    def __init__(self, _params: Mapping[str, str]) -> None:
        pass

    def map(self, _value: Value) -> bytes | None:
        """Return a zero byte."""
        return b"\0"


_TYPES: Final[dict[str, Callable[[Mapping[str, str]], Vindex]]] = {
    "hash": Hash,
    "numeric": Numeric,
    "reverse_bits": ReverseBits,
    "binary": Binary,
    "binary_md5": BinaryMd5,
    "unicode_loose_md5": UnicodeLooseMd5,
    "unicode_loose_xxhash": UnicodeLooseXxHash,
    "null": Null,
    "xxhash": XxHash,
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


def _loose_key(value: Value) -> bytes | None:
    try:
        return loose_key(_bytes(value).decode())
    except UnicodeDecodeError:
        return None


def _bytes(value: Value) -> bytes:
    """Return a value as the text of the protocol; NULL is empty."""
    match value:
        case None:
            return b""
        case bytes():
            return value
        case int():
            return b"%d" % value
        case Number():
            return value.text.encode()
