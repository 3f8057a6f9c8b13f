"""Proofs of a password: how a client makes them, how a server checks them.

Both plugins send ``H(password) XOR H(what the server stores, nonce)``: with the stored
hash of a hash one can take the proof apart, hash what is left and compare.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_authentication_methods_native_password_authentication.html
https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html
"""

from __future__ import annotations

from hashlib import sha1, sha256
from hmac import compare_digest
from itertools import cycle
from typing import Final


NATIVE_PROOF_BYTES: Final = 20
SHA2_PROOF_BYTES: Final = 32


def stored_native(password: bytes) -> bytes:
    """Return what a server stores for mysql_native_password: SHA1(SHA1(password))."""
    return sha1(sha1(password).digest()).digest()  # noqa: S324 - the protocol's hash


def stored_sha2(password: bytes) -> bytes:
    """Return what a server caches for caching_sha2_password: SHA256(SHA256(password))."""
    return sha256(sha256(password).digest()).digest()


def native_proof(password: bytes, nonce: bytes) -> bytes:
    """Return the client's answer for mysql_native_password; no password, no bytes."""
    if not password:
        return b""
    once = sha1(password).digest()  # noqa: S324
    mask = sha1(nonce + sha1(once).digest()).digest()  # noqa: S324
    return _xor(once, mask)


def sha2_proof(password: bytes, nonce: bytes) -> bytes:
    """Return the client's first answer for caching_sha2_password; no password, no bytes."""
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


def is_sha2_proof(proof: bytes, nonce: bytes, stored: bytes) -> bool:
    """Check a proof against SHA256(SHA256(password)), in the same time for every wrong one."""
    mask = sha256(stored + nonce).digest()
    once = _xor(mask, proof[:SHA2_PROOF_BYTES].ljust(SHA2_PROOF_BYTES, b"\0"))
    matches = compare_digest(sha256(once).digest(), stored)
    return matches and len(proof) == SHA2_PROOF_BYTES


def masked_password(password: bytes, nonce: bytes) -> bytes:
    """Return what is RSA-encrypted in full authentication without TLS: NUL added, nonce over it."""
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
