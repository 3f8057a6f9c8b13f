"""Verification of a password, by clear text or by a hash from MySQL's account tables. Pure."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from hmac import compare_digest
from typing import Final

from streamfrom.proxy.passwords.scramble import stored_native, stored_sha2


_ALPHABET: Final = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

# The three digest bytes that make each group of four characters, most significant first.
_GROUPS: Final = (
    (0, 10, 20), (21, 1, 11), (12, 22, 2), (3, 13, 23), (24, 4, 14),
    (15, 25, 5), (6, 16, 26), (27, 7, 17), (18, 28, 8), (9, 19, 29),
)  # fmt: skip


# About 0.3 ms.
ROUNDS_AT_ONCE: Final = 500


def sha256_crypt(password: bytes, salt: bytes, rounds: int) -> Generator[None, None, bytes]:
    """Make the 43 characters of the hash under "$A$005$…" of caching_sha2_password, and yield after every ROUNDS_AT_ONCE.

    Ulrich Drepper's algorithm (https://www.akkadia.org/drepper/SHA-crypt.txt), except that MySQL uses the whole salt, at any length. Neither
    the standard library nor OpenSSL has it. It costs about 3 ms at 5,000 rounds, on purpose, and over a second at MySQL's maximum of rounds.
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
    # The bytes around the digest depend only on the round's number mod 2, 3 and 7: 42 pairs.
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


_SALT_BYTES: Final = 20
_DIGEST_CHARACTERS: Final = 43
_CRYPT_FORM: Final = re.compile(
    rb"\$A\$(?P<thousands>[0-9A-F]{3})\$(?P<salt>.{20})(?P<digest>[./0-9A-Za-z]{43})", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class CryptHash:
    """The parts of ``$A$<rounds/1000>$<salt><digest>``."""

    rounds: int
    salt: bytes
    digest: bytes


@dataclass(slots=True)
class Verifier:
    """The hashes by which a password is verified."""

    native: bytes | None = None  # SHA1(SHA1(password)), for mysql_native_password
    # SHA256(SHA256(password)), for caching_sha2_password without its slow path.
    sha2: bytes | None = None
    # The hash that a server stores for caching_sha2_password; needs one slow login.
    crypt: CryptHash | None = None
    is_empty: bool = False
    # Found by a full authentication if only the crypt hash is known; used as `sha2` from then on.
    learnt: bytes | None = field(default=None, compare=False)

    @classmethod
    def from_password(cls, password: str) -> Verifier:
        """Make one from clear text, which is not kept. Serves both plugins, always fast."""
        raw = password.encode()
        return cls(stored_native(raw), stored_sha2(raw), is_empty=not raw)

    @classmethod
    def from_hash(cls, text: str) -> Verifier:
        """Make one from ``*HEX``, ``$A$005$…`` or the latter as ``0x24…``; else ValueError."""
        if text.startswith("*"):
            return cls(native=_native_hash(text))
        raw = text.encode()
        if text.startswith(("0x", "0X")):
            try:
                raw = bytes.fromhex(text[2:])
            except ValueError:
                raise ValueError("expected hexadecimal digits behind 0x") from None
        return cls(crypt=_crypt_hash(raw))

    def is_password(self, password: bytes) -> Generator[None, None, bool]:
        """Check clear text against any known hash; against a crypt hash in pieces, as `sha256_crypt`."""
        if self.crypt is not None:
            crypt = self.crypt
            digest = yield from sha256_crypt(password, crypt.salt, crypt.rounds)
            return compare_digest(digest, crypt.digest)
        if self.sha2 is not None:
            return compare_digest(stored_sha2(password), self.sha2)
        return self.native is not None and compare_digest(stored_native(password), self.native)

    def decoy(self, seed: bytes) -> Verifier:
        """Return a verifier of the same kind, made from *seed*, for names that no user has."""
        if self.crypt is not None:
            digest = sha256(seed).hexdigest().encode()
            salt, made = digest[:_SALT_BYTES], digest[:_DIGEST_CHARACTERS]
            return Verifier(crypt=CryptHash(self.crypt.rounds, salt, made))
        native = sha1(seed).digest()  # noqa: S324
        return Verifier(native, None if self.sha2 is None else sha256(seed).digest())


def _native_hash(text: str) -> bytes:
    try:
        stored = bytes.fromhex(text[1:])
    except ValueError:
        stored = b""
    if len(stored) != 20:
        raise ValueError("expected '*' and 40 hexadecimal digits")
    return stored


def _crypt_hash(raw: bytes) -> CryptHash:
    form = _CRYPT_FORM.fullmatch(raw)
    if form is None:
        raise ValueError(
            "expected '*' and 40 hexadecimal digits, or '$A$005$' and the 63 characters "
            "that MySQL stores for caching_sha2_password"
        )
    # MySQL writes the thousands in hexadecimal; its maximum is 0xFFF.
    return CryptHash(int(form["thousands"], 16) * 1000, form["salt"], form["digest"])
