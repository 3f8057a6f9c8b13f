"""The key with which clients hide a password when there is no TLS (`caching_sha2_password`)."""

from __future__ import annotations

from functools import cached_property

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa


KEY_BITS = 2048
_OAEP = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), label=None)  # noqa: S303 - the protocol's


class ServerKey:
    """A key pair made when it is first needed, for as long as the process lives."""

    def make(self) -> None:
        """Make the pair unless there is one; that takes some 80 ms."""
        self._key  # noqa: B018 - what is read is kept

    @cached_property
    def _key(self) -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)

    def public_pem(self) -> bytes:
        """Return the public half as PEM, as the client asks for it."""
        return self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def decrypt(self, data: bytes) -> bytes:
        """Return what the client encrypted. Raises ValueError."""
        return self._key.decrypt(data, _OAEP)
