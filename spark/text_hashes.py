"""xxHash64 and MD5 of many short texts at once: what the vindexes `xxhash` and `binary_md5` are.

Texts of keys are short, and numpy does to thousands of them what a hash function of C does to one. Longer ones are
left to those functions. Sources: the XXH64 specification (xxHash, doc/xxhash_spec.md) and RFC 1321.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh64_intdigest


if TYPE_CHECKING:
    from numpy.typing import NDArray

# The arrays of so many texts stay in a core's cache.
_CHUNK: Final = 1 << 13
_XXHASH_SHORT: Final = 31  # bytes; from 32 on it works by stripes
_MD5_SHORT: Final = 55  # bytes; more do not fit one block next to the length
_MD5_BLOCK: Final = 64

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_MD5_START: Final = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_MD5_SINES: Final = tuple(
    np.uint32(int(abs(math.sin(step + 1)) * 2**32)) for step in range(_MD5_BLOCK)
)
_MD5_TURNS: Final = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_MD5_WORDS: Final = (
    (1, 0),
    (5, 1),
    (3, 5),
    (7, 0),
)  # step i reads word (factor * i + first) % 16


def xxhash64(texts: pa.Array) -> NDArray[np.uint64]:
    """Return the XXH64 with seed 0 of each of *texts*, a large_binary array without NULL."""
    result = np.empty(len(texts), np.uint64)
    _by_chunks(texts, _XXHASH_SHORT, _short_xxhash64, xxh64_intdigest, result)
    return result


def md5(texts: pa.Array) -> NDArray[np.void]:
    """Return the MD5 of each of *texts*, a large_binary array without NULL, as 16 bytes."""
    result = np.empty(len(texts), "V16")
    _by_chunks(texts, _MD5_SHORT, _short_md5, _md5_digest, result)
    return result


def _md5_digest(text: bytes) -> np.void:
    return np.void(hashlib.md5(text, usedforsecurity=False).digest())


def _by_chunks(
    texts: pa.Array,
    longest: int,
    short: Callable[[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]], NDArray[Any]],
    single: Callable[[bytes], Any],
    result: NDArray[Any],
) -> None:
    """Fill *result*, by *short* for texts up to *longest* bytes, by *single* for one of the others."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64, len(texts) + 1, 8 * texts.offset)
    lengths = np.diff(offsets)
    whole = texts.buffers()[2]
    # So that a read of the last text may pass its end.
    data = np.zeros(int(offsets[-1] - offsets[0]) + _MD5_BLOCK, np.uint8)
    if whole is not None:
        data[:-_MD5_BLOCK] = np.frombuffer(whole, np.uint8)[offsets[0] : offsets[-1]]
    starts = offsets[:-1] - offsets[0]
    for first in range(0, len(texts), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        sizes = lengths[chunk]
        if sizes.max() <= longest:
            result[chunk] = short(data, starts[chunk], sizes)
            continue
        is_short = sizes <= longest
        places = first + np.flatnonzero(is_short)
        if len(places):
            result[places] = short(data, starts[places], lengths[places])
        for place in first + np.flatnonzero(~is_short):
            result[place] = single(texts[int(place)].as_py())


def _turned64(values: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return values << np.uint64(bits) | values >> np.uint64(64 - bits)


def _read(
    data: NDArray[np.uint8], starts: NDArray[np.int64], kind: str, size: int
) -> NDArray[np.uint64]:
    """Return the little-endian numbers of *size* bytes that begin at *starts*, wherever that is."""
    at_each_byte: NDArray[Any] = np.ndarray((len(data) - size,), kind, data, 0, (1,))
    return at_each_byte[starts].astype(np.uint64)


def _short_xxhash64(
    data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.uint64]:
    result = np.empty(len(starts), np.uint64)
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        result[places] = _xxhash64_of_length(data, starts[places], length)
    return result


def _xxhash64_of_length(
    data: NDArray[np.uint8], starts: NDArray[np.int64], length: int
) -> NDArray[np.uint64]:
    hashed = np.full(len(starts), int(_P5) + length, np.uint64)
    place = 0
    while length - place >= 8:
        hashed ^= _turned64(_read(data, starts + place, "<u8", 8) * _P2, 31) * _P1
        hashed = _turned64(hashed, 27) * _P1 + _P4
        place += 8
    if length - place >= 4:
        hashed ^= _read(data, starts + place, "<u4", 4) * _P1
        hashed = _turned64(hashed, 23) * _P2 + _P3
        place += 4
    for last in range(place, length):
        hashed ^= data[starts + last].astype(np.uint64) * _P5
        hashed = _turned64(hashed, 11) * _P1
    hashed ^= hashed >> np.uint64(33)
    hashed *= _P2
    hashed ^= hashed >> np.uint64(29)
    hashed *= _P3
    hashed ^= hashed >> np.uint64(32)
    return hashed


def _short_md5(
    data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.void]:
    words = _md5_words(data, starts, lengths)
    state = [np.full(len(starts), word, np.uint32) for word in _MD5_START]
    a, b, c, d = state
    for step in range(_MD5_BLOCK):
        turn, number = step // 16, step % 16
        if turn == 0:
            mixed = d ^ (b & (c ^ d))
        elif turn == 1:
            mixed = c ^ (d & (b ^ c))
        elif turn == 2:
            mixed = b ^ c ^ d
        else:
            mixed = c ^ (b | ~d)
        mixed += a
        mixed += _MD5_SINES[step]
        factor, first = _MD5_WORDS[turn]
        word = words[(factor * number + first) % 16]
        if word is not None:
            mixed += word
        bits = _MD5_TURNS[turn][step % 4]
        turned = mixed << np.uint32(bits)
        mixed >>= np.uint32(32 - bits)
        turned |= mixed
        turned += b
        a, d, c, b = d, c, b, turned
    result = np.empty((len(starts), 4), "<u4")
    for place, (before, after) in enumerate(zip(state, (a, b, c, d), strict=True)):
        result[:, place] = before + after
    return result.view("V16").reshape(-1)


def _md5_words(
    data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> list[NDArray[np.uint32] | None]:
    """Return the sixteen words of each text's only block; None for one that is zero in all."""
    used = int(lengths.max()) // 4 + 1
    places = np.arange(4 * used)
    windows: NDArray[Any] = np.ndarray((len(data) - 4 * used,), f"V{4 * used}", data, 0, (1,))
    block = windows[starts].view(np.uint8).reshape(-1, 4 * used)
    block *= places < lengths[:, None]
    block[np.arange(len(starts)), lengths] = 0x80
    columns = np.ascontiguousarray(block.view("<u4").T)
    words: list[NDArray[np.uint32] | None] = [None] * 16
    words[:used] = list(columns)
    words[14] = (lengths * 8).astype(np.uint32)
    return words


def texts_of(values: pa.Array) -> pa.Array:
    """Return each of *values* as MySQL's text protocol would send it, a large_binary array; NULL is empty.

    Raises:
        TypeError: they are no integers, decimals without a fraction, strings or binary.
    """
    kind = values.type
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):
        values = values.cast(pa.string())
    elif not (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    ):
        raise TypeError(f"a column of {kind} has no text")
    return pc.fill_null(values.cast(pa.large_binary()), b"")
