"""How a password is recognised: by clear text, or by what MySQL's account tables store of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from hmac import compare_digest
from typing import Final

from streamfrom.proxy.passwords.scramble import stored_native, stored_sha2
from streamfrom.proxy.passwords.sha256_crypt import sha256_crypt


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
    """The hashes of a password that recognise it.

    native: SHA1(SHA1(password)), for mysql_native_password.
    sha2: SHA256(SHA256(password)), for caching_sha2_password without its slow path.
    crypt: the hash a server stores for caching_sha2_password; needs one slow login.
    """

    native: bytes | None = None
    sha2: bytes | None = None
    crypt: CryptHash | None = None
    is_empty: bool = False
    # What a full authentication learns where only the crypt hash is known, to be used as `sha2`.
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
        """Check clear text against whatever is known; for a crypt hash in pieces, as `sha256_crypt`."""
        if self.crypt is not None:
            crypt = self.crypt
            digest = yield from sha256_crypt(password, crypt.salt, crypt.rounds)
            return compare_digest(digest, crypt.digest)
        if self.sha2 is not None:
            return compare_digest(stored_sha2(password), self.sha2)
        return self.native is not None and compare_digest(stored_native(password), self.native)

    def decoy(self, seed: bytes) -> Verifier:
        """Return a verifier of the same kind, made of *seed*, for names that no user has."""
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
    # MySQL writes the thousands in hexadecimal: the most it allows is 0xFFF.
    return CryptHash(int(form["thousands"], 16) * 1000, form["salt"], form["digest"])
