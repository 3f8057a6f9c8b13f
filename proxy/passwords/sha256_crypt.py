"""SHA-256 crypt, the hash under "$A$005$…" of caching_sha2_password.

Ulrich Drepper's algorithm (https://www.akkadia.org/drepper/SHA-crypt.txt), with one change that
MySQL made: the salt has 20 bytes and is used whole, where the original stops at 16.
The standard library has lost ``crypt``, and OpenSSL does not offer it as a function.

One hash costs about 3 ms at 5,000 rounds, on purpose, and more than a second at MySQL's most rounds. So it
is made in pieces.
"""

from __future__ import annotations

from collections.abc import Generator
from hashlib import sha256
from typing import Final


_ALPHABET: Final = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

# Which three digest bytes make each group of four characters, most significant first.
_GROUPS: Final = (
    (0, 10, 20), (21, 1, 11), (12, 22, 2), (3, 13, 23), (24, 4, 14),
    (15, 25, 5), (6, 16, 26), (27, 7, 17), (18, 28, 8), (9, 19, 29),
)  # fmt: skip


# About 0.3 ms.
ROUNDS_AT_ONCE: Final = 500


def sha256_crypt(password: bytes, salt: bytes, rounds: int) -> Generator[None, None, bytes]:
    """Make the 43 characters of the hash, and yield behind every ROUNDS_AT_ONCE.

    The salt is used as it is, at any length.
    """
    size = len(password)
    alternate = sha256(password + salt + password).digest()
    first = sha256(password + salt + _repeated(alternate, size))
    bits = size
    while bits:
        first.update(alternate if bits & 1 else password)
        bits >>= 1
    digest = first.digest()

    p = _repeated(sha256(password * size).digest(), size)
    s = _repeated(sha256(salt * (16 + digest[0])).digest(), len(salt))
    # What surrounds the digest depends on the round's number mod 2, 3 and 7 only: 42 pairs.
    around = []
    for number in range(42):
        middle = (s if number % 3 else b"") + (p if number % 7 else b"")
        around.append((p + middle, b"") if number & 1 else (b"", middle + p))
    for start in range(0, rounds, ROUNDS_AT_ONCE):
        for number in range(start, min(start + ROUNDS_AT_ONCE, rounds)):
            before, after = around[number % 42]
            digest = sha256(before + digest + after).digest()
        yield
    return _encode(digest)


def _repeated(block: bytes, size: int) -> bytes:
    return (block * (size // len(block) + 1))[:size]


def _encode(digest: bytes) -> bytes:
    groups = [(digest[a] << 16 | digest[b] << 8 | digest[c], 4) for a, b, c in _GROUPS]
    groups.append((digest[31] << 8 | digest[30], 3))
    return bytes(
        _ALPHABET[value >> 6 * place & 0x3F] for value, size in groups for place in range(size)
    )
