"""The proxy's own logins at backends: the client's side of ``auth``.

It has the plugins mysql_native_password and caching_sha2_password. It refuses mysql_clear_password, by which a server could
ask for the password itself, and every other plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from streamfrom.proxy.errors import BackendError, WireError
from streamfrom.proxy.passwords.scramble import masked_password, native_proof, sha2_proof
from streamfrom.proxy.wire.constants import (
    AUTH_MORE_DATA,
    CACHING_SHA2,
    EOF_HEADER,
    NATIVE_PASSWORD,
)
from streamfrom.proxy.wire.handshake import decode_auth_switch


if TYPE_CHECKING:
    from collections.abc import Callable


_PROOFS: Final[dict[str, Callable[[bytes, bytes], bytes]]] = {
    NATIVE_PASSWORD: native_proof,
    CACHING_SHA2: sha2_proof,
}

_FAST_OK: Final = b"\x03"
_FULL_NEEDED: Final = b"\x04"
_WANTS_PUBLIC_KEY: Final = b"\x02"

# ER_… of the client library: what its own tools report for the case.
_CR_AUTH_PLUGIN_CANNOT_LOAD: Final = 2059


class ClientAuth:
    """Answers one server's questions during a login.

    is_secure: no third party can listen (TLS or a unix socket), so the password may go as it is.

    Without TLS the server's RSA key is fetched from the server itself, as drivers do. That protects the password from
    listeners, but not from someone who poses as the server; TLS with verification protects from both.
    """

    __slots__ = ("_is_secure", "_nonce", "_password", "_plugin", "_waits_for_key")

    def __init__(self, password: str, *, is_secure: bool) -> None:
        self._password = password.encode()
        self._is_secure = is_secure
        self._plugin = CACHING_SHA2
        self._nonce = b""
        self._waits_for_key = False

    def begin(self, plugin: str, nonce: bytes) -> tuple[str, bytes]:
        """Return the plugin to name in the login and its proof.

        Where the greeting names a plugin that is not supported, it names a supported one and sends no proof: the server then
        switches, or refuses.
        """
        self._nonce = nonce
        if plugin not in _PROOFS:
            return self._plugin, b""
        self._plugin = plugin
        return plugin, _PROOFS[plugin](self._password, nonce)

    def receive(self, payload: bytes) -> bytes | None:
        """Answer an AuthSwitchRequest or AuthMoreData packet; None where none is due.

        Raises BackendError if the server asks for a plugin that is not supported, WireError if its packets are malformed.
        """
        if payload[0] == EOF_HEADER:
            return self._switched(payload)
        if payload[0] == AUTH_MORE_DATA and self._plugin == CACHING_SHA2:
            return self._more(payload[1:])
        raise WireError("unexpected packet during the login at a backend")

    def _switched(self, payload: bytes) -> bytes:
        plugin, self._nonce = decode_auth_switch(payload)
        proof_of = _PROOFS.get(plugin)
        if proof_of is None:
            raise BackendError(
                _CR_AUTH_PLUGIN_CANNOT_LOAD,
                "HY000",
                f"the server wants authentication plugin {plugin!r}; give the account "
                f"{CACHING_SHA2!r} or {NATIVE_PASSWORD!r}",
            )
        self._plugin = plugin
        self._waits_for_key = False
        return proof_of(self._password, self._nonce)

    def _more(self, data: bytes) -> bytes | None:
        if self._waits_for_key:
            self._waits_for_key = False
            return _encrypted(masked_password(self._password, self._nonce), data)
        if data == _FAST_OK:
            return None
        if data != _FULL_NEEDED:
            raise WireError("unknown step of caching_sha2_password")
        if self._is_secure:
            return self._password + b"\0"
        self._waits_for_key = True
        return _WANTS_PUBLIC_KEY


def _encrypted(text: bytes, pem: bytes) -> bytes:
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise WireError("the server's RSA key cannot be read") from None
    if not isinstance(key, RSAPublicKey):
        raise WireError("the server's public key is not an RSA key")
    # SHA-1 is the protocol's choice; OAEP does not need it to resist collisions.
    sha1 = hashes.SHA1()  # noqa: S303
    try:
        return key.encrypt(text, padding.OAEP(padding.MGF1(sha1), sha1, label=None))
    except ValueError:
        raise WireError("the server's RSA key is too small for the password") from None
