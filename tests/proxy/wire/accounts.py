"""Accounts of every kind, and the two halves of a login played against each other."""

from __future__ import annotations

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from streamfrom.proxy.passwords.scramble import stored_native
from streamfrom.proxy.passwords.sha256_crypt import in_one_go, sha256_crypt
from streamfrom.proxy.passwords.verifier import Verifier
from streamfrom.proxy.wire.login.auth import Authenticator, Credentials, nonce_from


PASSWORD = "päss"
NONCE = nonce_from(bytes(range(20)))
DICE = bytes(range(32))
SALT = b"\x01abcdefghijklmnopq\x7f;"
CRYPT = "$A$001$" + (SALT + in_one_go(sha256_crypt(PASSWORD.encode(), SALT, 1000))).decode()
NATIVE = "*" + stored_native(PASSWORD.encode()).hex().upper()


class Key:
    """A real RSA key pair."""

    def __init__(self) -> None:
        # The smallest the library makes: tests do not protect anything.
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=1024)

    def public_pem(self) -> bytes:
        return self._key.public_key().public_bytes(
            Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
        )

    def decrypt(self, data: bytes) -> bytes:
        sha1 = hashes.SHA1()
        return self._key.decrypt(data, padding.OAEP(padding.MGF1(sha1), sha1, label=None))


KEY = Key()


def verifier(kind: str) -> Verifier:
    """A fresh verifier: one with a crypt hash learns, so it must not be shared by tests."""
    if kind == "clear":
        return Verifier.from_password(PASSWORD)
    if kind == "empty":
        return Verifier.from_password("")
    return Verifier.from_hash(NATIVE if kind == "native" else CRYPT)


def nonce_source():
    """Distinct nonces without dice."""
    counter = iter(range(1 << 30))
    return lambda: nonce_from(next(counter).to_bytes(20, "little"))


def authenticator(*kinds: str, **options) -> Authenticator:
    """Accounts named like their kind."""
    accounts = {kind: Credentials(kind, verifier(kind)) for kind in kinds}
    return Authenticator(accounts, nonce_source(), b"a secret", **options)
