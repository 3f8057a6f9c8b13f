"""From a column's value to the keyspace id that owns it, byte for byte as Vitess computes it.

A vindex is pure and unique here: one value, one keyspace id, or None where the value belongs
to no shard.

The weights of characters for the ``unicode_loose`` vindexes are those of the Unicode collation algorithm with CLDR 23's root order (Unicode 6.2),
as in golang.org/x/text/collate; MySQL's and ICU's differ. Here are those of Latin, Greek
and Cyrillic letters, the signs of Latin-1 and general punctuation. For any other character, and
for one whose weight depends on its neighbours, there is no key: better refused than misrouted.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from xxhash import xxh64_intdigest

from streamfrom.engine.errors import VindexError
from streamfrom.sqlparse_ext.literal_values import Number


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Value


# A combining mark has no primary weight, but it makes another letter of some Cyrillic ones
# when it follows.
_FIRST_MARK, _LAST_MARK = 0x300, 0x344
_FIRST_CYRILLIC, _LAST_CYRILLIC = 0x400, 0x45F

# The first code point of a line, then the weights of it and those that follow it: "-" is none,
# "+" joins several. Other characters have the weights of those they are composed of.
_TABLE: Final = """
0000 - - - - - - - - - 0100 0101 0102 0103 0104 - -
0010 - - - - - - - - - - - - - - - -
0020 0109 015d 01f0 0275 13ef 0276 0273 01e9 01fa 01fb 026c 049c 0120 010d 0172 0271
0030 14e6 14e7 14e8 14e9 14ea 14eb 14ec 14ed 14ee 14ef 0136 0131 04a0 04a1 04a2 0162
0040 026b 15ef 1605 161d 1631 164c 1684 1691 16b4 16cd 16e6 16ff 1711 1741 174f 1771
0050 1796 17ab 17bd 17f3 1816 1836 185f 1871 187b 1880 1895 01fc 0272 01fd 0312 010b
0060 030f 15ef 1605 161d 1631 164c 1684 1691 16b4 16cd 16e6 16ff 1711 1741 174f 1771
0070 1796 17ab 17bd 17f3 1816 1836 185f 1871 187b 1880 1895 01fe 04a4 01ff 04a6 -
0080 - - - - - 0105 - - - - - - - - - -
0090 - - - - - - - - - - - - - - - -
00a0 0109 015e 13ee 13f0 13ed 13f1 04a5 0267 0316 040c 15ef 01f8 04a3 - 040d 0313
00b0 0382 049d 14e8 14e9 0310 193b 0269
00b8 0319 14e7 1771 01f9 14e7+04ac+14ea 14e7+04ac+14e8 14e9+04ac+14ea 0163
00c6 15ef+164c
00d0 1631
00d7 049f 1771
00de 18c4 17f3+17f3
00e6 15ef+164c
00f0 1631
00f7 049e 1771
00fe 18c4
0110 1631 1631
0126 16b4 16b4
0131 16d1 16cd+16e6 16cd+16e6
0138 17b9
013f 1711 1711 1711 1711
0149 18ef+174f 176d 176d
0152 1771+164c 1771+164c
0166 181b 181b
017f 17f3
0370 1933 1933 1953 1953 0320 0321 1930 1930
037a 1936 1949 1948 194a
0384 0310
0391 1929 192a 192b 192d 192e 1932 1934 1935 1936 1938 1939 193b 193c 193d 193e 193f
03a1 1944
03a3 1947 194b 194c 194d 194e 194f 1951
03b1 1929 192a 192b 192d 192e 1932 1934 1935 1936 1938 1939 193b 193c 193d 193e 193f
03c1 1944 1947 1947 194b 194c 194d 194e 194f 1951
03cf 1938+1929+1936 192a 1935 194c
03d5 194d 193f 1938+1929+1936 1943 1943 1931 1931 192f 192f 1942 1942 1952 1952 1974 1974 1979
03e5 1979 197a 197a 197d 197d 1984 1984 1987 1987 198b 198b 1938 1944 1947 1937 1935
03f5 192e 0497 1954 1954 1947 1941 1941 1946 1949 1948 194a
0402 19cb 19d1 19e1 19fe 1a16 1a1b 1a23 1a4d 1a72 1ab1 1ab5
040e 1abd 1b2a 1991 19a9 19ad 19b1 19c5 19d9 19e5 19f2 1a0a 1a1f 1a28 1a42 1a54 1a5d
041e 1a77 1a87 1a94 1a9d 1aa6 1ab9 1ad6 1ada 1b01 1b0c 1b2e 1b33 1b3a 1b3f 1b47 1b54
042e 1b5c 1b62 1991 19a9 19ad 19b1 19c5 19d9 19e5 19f2 1a0a 1a1f 1a28 1a42 1a54 1a5d
043e 1a77 1a87 1a94 1a9d 1aa6 1ab9 1ad6 1ada 1b01 1b0c 1b2e 1b33 1b3a 1b3f 1b47 1b54
044e 1b5c 1b62
0452 19cb 19d1 19e1 19fe 1a16 1a1b 1a23 1a4d 1a72 1ab1 1ab5
045e 1abd 1b2a
1e9a 15ef+18f1
1e9c 1802 1803 17f3+17f3 164b
1efa 1711+1711 1711+1711 186c 186c 1890 1890
2010 0113 0113 0114 0115 0116 0117 0262 010c 01ea 01eb 01ec 01ed 01f1 01f2 01f3 01f4
2020 027c 027d 0281 0282 0172 0172+0172 0172+0172+0172 0283
20ac 1407
"""
# Where a letter may be decomposed: beyond, marks make other letters that are not listed.
_BLOCKS: Final = (range(0x180), range(0x370, 0x460), range(0x1E00, 0x1F00))


def _read_table() -> dict[str, bytes]:
    keys = {}
    for line in _TABLE.split("\n"):
        first, *weights = line.split() or [""]
        for offset, joined in enumerate(weights):
            letter = chr(int(first, 16) + offset)
            keys[letter] = bytes.fromhex(joined.replace("+", "").replace("-", ""))
    return keys


_KEYS: Final = _read_table()


def loose_key(text: str) -> bytes | None:
    """Return the primary collation key of *text* without blanks at its end.

    None when the key of any of its characters is not known here.
    """
    text = text.rstrip(" ")
    letters = [letter for letter in text if not _is_mark(letter)]
    if len(letters) < len(text) and any(
        _FIRST_CYRILLIC <= ord(letter) <= _LAST_CYRILLIC for letter in letters
    ):
        return None
    keys = [_key_of(letter) for letter in letters]
    found = [key for key in keys if key is not None]
    return b"".join(found) if len(found) == len(keys) else None


def _key_of(letter: str) -> bytes | None:
    key = _KEYS.get(letter)
    if key is not None or not any(ord(letter) in block for block in _BLOCKS):
        return key
    base = "".join(part for part in unicodedata.normalize("NFD", letter) if not _is_mark(part))
    return _KEYS.get(base)


def _is_mark(letter: str) -> bool:
    return _FIRST_MARK <= ord(letter) <= _LAST_MARK


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


def is_of_strings(vindex: Vindex) -> bool:
    """True for a vindex whose columns hold strings, which a server compares with numbers by value.

    '05' = 5 is true there, and '05' and '5' have different keyspace ids. An ``xxhash`` is not
    included, because it often places integers.
    """
    return vindex.type in {"binary", "binary_md5", *_LOOSE}


def is_loose(vindex: Vindex) -> bool:
    """True for a vindex of collated text, which maps only the characters whose weights are known here."""
    return vindex.type in _LOOSE


def make_vindex(vindex_type: str) -> Vindex:
    """Return the vindex of this type; VindexError for a type that is not known."""
    try:
        return Vindex(vindex_type, _MAPS[vindex_type])
    except KeyError:
        raise VindexError(
            f'vindexType "{vindex_type}" not found; use one of {", ".join(_MAPS)}'
        ) from None


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
    """Return a function that digests a text's primary collation key, if that is known."""

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
    # Vitess refuses a negative number here, but `hash` takes it.
    return number if number is not None and 0 <= number < _BEYOND else None
