"""Proofs of a password: made by clients, checked by servers.

Both plugins of MySQL send ``H(password) XOR H(stored hash, nonce)``. The server stores the hash of
a hash, so it can take the proof apart, hash the rest and compare.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_authentication_methods_native_password_authentication.html
https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html

MariaDB's plugin ed25519 sends a signature as in RFC 8032, but with the password, of any length, as the secret key.
Libraries take only keys of 32 bytes, so the curve is implemented here. A signature takes 1 ms.
https://mariadb.com/kb/en/authentication-plugin-ed25519/
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha1, sha256, sha512
from hmac import compare_digest
from itertools import cycle
from typing import Final


NATIVE_PROOF_BYTES: Final = 20
SHA2_PROOF_BYTES: Final = 32


def stored_native(password: bytes) -> bytes:
    """Return the hash stored for mysql_native_password: SHA1(SHA1(password))."""
    return sha1(sha1(password).digest()).digest()  # noqa: S324 - the protocol's hash


def stored_sha2(password: bytes) -> bytes:
    """Return the hash cached for caching_sha2_password: SHA256(SHA256(password))."""
    return sha256(sha256(password).digest()).digest()


def native_proof(password: bytes, nonce: bytes) -> bytes:
    """Return the client's reply for mysql_native_password; empty for no password."""
    if not password:
        return b""
    once = sha1(password).digest()  # noqa: S324
    mask = sha1(nonce + sha1(once).digest()).digest()  # noqa: S324
    return _xor(once, mask)


def sha2_proof(password: bytes, nonce: bytes) -> bytes:
    """Return the client's first reply for caching_sha2_password; empty for no password."""
    if not password:
        return b""
    once = sha256(password).digest()
    mask = sha256(sha256(once).digest() + nonce).digest()
    return _xor(once, mask)


def is_native_proof(proof: bytes, nonce: bytes, stored: bytes) -> bool:
    """Check a proof against SHA1(SHA1(password)), in the same time for every wrong one."""
    mask = sha1(nonce + stored).digest()  # noqa: S324
    # A proof of another length is padded and compared like any other, so that the time reveals nothing.
    once = _xor(mask, proof[:NATIVE_PROOF_BYTES].ljust(NATIVE_PROOF_BYTES, b"\0"))
    matches = compare_digest(sha1(once).digest(), stored)  # noqa: S324
    return matches and len(proof) == NATIVE_PROOF_BYTES


def is_sha2_proof(
    proof: bytes, nonce: bytes, stored: bytes, *, nonce_first: bool = False
) -> bool:
    """Check a proof against SHA256(SHA256(password)), in the same time for every wrong one.

    nonce_first: it was made with nonce and hash in the other order, as by Rust's sqlx.
    """
    mask = sha256(nonce + stored if nonce_first else stored + nonce).digest()
    once = _xor(mask, proof[:SHA2_PROOF_BYTES].ljust(SHA2_PROOF_BYTES, b"\0"))
    matches = compare_digest(sha256(once).digest(), stored)
    return matches and len(proof) == SHA2_PROOF_BYTES


def masked_password(password: bytes, nonce: bytes) -> bytes:
    """Return the text to encrypt with RSA in full authentication without TLS: the password and NUL, XOR the nonce."""
    return _xor(password + b"\0", nonce)


def unmasked_password(masked: bytes, nonce: bytes) -> bytes:
    """Return the password with its final NUL."""
    return _xor(masked, nonce)


def certificate_signature(stored: bytes, nonce: bytes, certificate_sha256: bytes) -> bytes:
    """Return the text of the OK packet by which a server proves its self-signed certificate.

    MariaDB 11.4 and newer clients accept such a certificate from a server that knows the password's
    stored hash. *certificate_sha256* is the SHA-256 of the certificate in DER.
    https://mariadb.org/mission-impossible-zero-configuration-ssl/
    """
    # Upper case: MariaDB's C client compares the text, others the number.
    digest = sha256(stored + nonce + certificate_sha256).hexdigest().upper()
    return b"\x01" + digest.encode()


def _xor(text: bytes, key: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(text, cycle(key), strict=False))


_P: Final = 2**255 - 19
_ORDER: Final = 2**252 + 27742317777372353535851937790883648493
_D: Final = -121665 * pow(121666, -1, _P) % _P

# A point in extended coordinates: x = X/Z, y = Y/Z, XY = ZT.
_Point = tuple[int, int, int, int]
_NEUTRAL: Final[_Point] = (0, 1, 1, 0)


def sign(password: bytes, message: bytes) -> bytes:
    """Return the 64 bytes that prove the password in reply to *message*, the server's nonce."""
    digest = sha512(password).digest()
    secret = (int.from_bytes(digest[:32], "little") & (1 << 254) - 8) | 1 << 254
    public = _encoded(_times_base(secret))
    once = _number(digest[32:] + message)
    commitment = _encoded(_times_base(once))
    challenge = _number(commitment + public + message)
    return commitment + ((once + challenge * secret) % _ORDER).to_bytes(32, "little")


def _number(data: bytes) -> int:
    return int.from_bytes(sha512(data).digest(), "little") % _ORDER


def _sum(one: _Point, other: _Point) -> _Point:
    x1, y1, z1, t1 = one
    x2, y2, z2, t2 = other
    a, b = (y1 - x1) * (y2 - x2), (y1 + x1) * (y2 + x2)
    c, d = 2 * t1 * t2 * _D, 2 * z1 * z2
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


@lru_cache(maxsize=1)
def _doubles() -> tuple[_Point, ...]:
    """Return the base point, twice the base point, four times …: one for each bit of a number."""
    y = 4 * pow(5, -1, _P) % _P
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if x & 1:
        x = _P - x
    points = [(x, y, 1, x * y % _P)]
    while len(points) < 256:
        points.append(_sum(points[-1], points[-1]))
    return tuple(points)


def _times_base(number: int) -> _Point:
    found = _NEUTRAL
    for bit, point in enumerate(_doubles()):
        if number >> bit & 1:
            found = _sum(found, point)
    return found


def _encoded(point: _Point) -> bytes:
    x, y, z, _ = point
    inverse = pow(z, -1, _P)
    x, y = x * inverse % _P, y * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")
