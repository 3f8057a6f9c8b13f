"""The proxy's own logins at backends: the client's side of ``auth``.

| plugin | what is sent |
|---|---|
| mysql_native_password, caching_sha2_password | a proof; for the latter, if the server asks for it, the password, over a secure transport or under its RSA key |
| sha256_password | the password, over TLS or under the server's RSA key |
| client_ed25519, parsec | a signature (MariaDB) |
| dialog, mysql_clear_password | the password, over a secure transport only (PAM) |

A plugin is a generator: it is given the nonce of the switch, yields the answer to each packet, and is sent the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import KW_ONLY, dataclass
from hashlib import pbkdf2_hmac
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from streamfrom.proxy.errors import BackendError, WireError
from streamfrom.proxy.passwords import scramble as ed25519
from streamfrom.proxy.passwords.scramble import masked_password, native_proof, sha2_proof
from streamfrom.proxy.wire.constants import (
    AUTH_MORE_DATA,
    CACHING_SHA2,
    EOF_HEADER,
    NATIVE_PASSWORD,
    NONCE_BYTES,
)
from streamfrom.proxy.wire.login.handshake import decode_auth_switch


if TYPE_CHECKING:
    Answers = Generator[bytes | None, bytes, None]


_FAST_OK: Final = b"\x03"
_FULL_NEEDED: Final = b"\x04"
_WANTS_PUBLIC_KEY: Final = b"\x02"
_WANTS_KEY_OF_SHA256: Final = b"\x01"
_LONG_NONCE_BYTES: Final = 32
_DICE_BYTES: Final = 32
# The salt of parsec: the letter of the hash, the logarithm of its rounds, and 18 random bytes.
_SALT_BYTES: Final = 20
_SALT_HASH: Final = ord("P")
_ROUNDS_LOG_MAX: Final = 3
# The kinds of a question of PAM, without the bit that marks the last one.
_QUESTION_FOR_PASSWORD: Final = 0x04
_LAST: Final = 0x01

# ER_… of the client library, as its own tools report the case.
_CR_AUTH_PLUGIN_CANNOT_LOAD: Final = 2059
_CR_AUTH_PLUGIN_ERR: Final = 2061


@dataclass(slots=True, eq=False, repr=False)
class ClientAuth:
    """Answers one server's questions during a login.

    Without TLS the server's RSA key is fetched from the server itself, as drivers do. That protects the password from
    listeners, but not from someone who poses as the server; TLS with verification protects from both.
    """

    _password: bytes
    _: KW_ONLY
    # No third party can listen (TLS or a unix socket), so the password may be sent in the clear.
    is_secure: bool
    is_tls: bool = False
    dice: bytes  # 32 random bytes, used once
    _answers: Answers | None = None

    def __post_init__(self) -> None:
        assert len(self.dice) == _DICE_BYTES

    def begin(self, plugin: str, nonce: bytes) -> tuple[str, bytes]:
        """Return the plugin to name in the login and its proof.

        If the greeting names a plugin without a proof, this names one that has a proof and sends none: the server then
        switches, or refuses.
        """
        if plugin not in (NATIVE_PASSWORD, CACHING_SHA2):
            return CACHING_SHA2, b""
        return plugin, self._start(_PLUGINS[plugin], nonce) or b""

    def receive(self, payload: bytes) -> bytes | None:
        """Answer an AuthSwitchRequest, AuthMoreData or a plugin's own packet; None if no answer is due.

        Raises BackendError if the server asks for a plugin that is not supported, WireError if its packets are malformed.
        """
        if payload[0] == EOF_HEADER:
            plugin, nonce = decode_auth_switch(payload)
            answers = _PLUGINS.get(plugin)
            if answers is None:
                raise BackendError(
                    _CR_AUTH_PLUGIN_CANNOT_LOAD,
                    "HY000",
                    f"the server wants authentication plugin {plugin!r}, which no password answers;"
                    f" give the account one of {', '.join(_PLUGINS)}",
                )
            return self._start(answers, nonce)
        if self._answers is None:
            raise WireError("unexpected packet during the login at a backend")
        try:
            # A plugin's own packet that might be mistaken for another kind has the header of AuthMoreData before it.
            return self._answers.send(payload[payload[0] == AUTH_MORE_DATA :])
        except StopIteration:
            raise WireError("unexpected packet during the login at a backend") from None

    def _start(
        self, answers: Callable[[ClientAuth, bytes], Answers], nonce: bytes
    ) -> bytes | None:
        self._answers = answers(self, nonce)
        return next(self._answers)

    # --- plugins --------------------------------------------------------------------------

    def _native(self, nonce: bytes) -> Answers:
        yield native_proof(self._password, nonce[:NONCE_BYTES])

    def _caching_sha2(self, nonce: bytes) -> Answers:
        nonce = nonce[:NONCE_BYTES]
        step = yield sha2_proof(self._password, nonce)
        if step == _FAST_OK:
            yield None
        elif step != _FULL_NEEDED:
            raise WireError("unknown step of caching_sha2_password")
        elif self.is_secure:
            yield self._password + b"\0"
        else:
            pem = yield _WANTS_PUBLIC_KEY
            yield _encrypted(masked_password(self._password, nonce), pem)

    def _sha256(self, nonce: bytes) -> Answers:
        if self.is_tls or not self._password:
            yield self._password + b"\0"
        else:
            pem = yield _WANTS_KEY_OF_SHA256
            yield _encrypted(masked_password(self._password, nonce[:NONCE_BYTES]), pem)

    def _ed25519(self, nonce: bytes) -> Answers:
        if len(nonce) != _LONG_NONCE_BYTES:
            raise WireError("the server's nonce for client_ed25519 has not 32 bytes")
        yield ed25519.sign(self._password, nonce)

    def _parsec(self, nonce: bytes) -> Answers:
        if len(nonce) != _LONG_NONCE_BYTES:
            raise WireError("the server's nonce for parsec has not 32 bytes")
        salt = yield b""
        # More rounds than MariaDB's clients accept would keep all others waiting.
        if len(salt) != _SALT_BYTES or salt[0] != _SALT_HASH or salt[1] > _ROUNDS_LOG_MAX:
            raise WireError("unknown salt of parsec")
        secret = pbkdf2_hmac("sha512", self._password, salt[2:], 1024 << salt[1], 32)
        key = Ed25519PrivateKey.from_private_bytes(secret)
        yield self.dice + key.sign(nonce + self.dice)

    def _dialog(self, question: bytes) -> Answers:
        self._check_secure("dialog")
        # It is answered once: a second question is for another password, or a new one. An empty question can be the first one.
        if question and question[0] & ~_LAST != _QUESTION_FOR_PASSWORD:
            raise BackendError(
                _CR_AUTH_PLUGIN_ERR,
                "HY000",
                "the server's plugin 'dialog' asks for something else than the password",
            )
        yield self._password + b"\0"

    def _clear(self, _: bytes) -> Answers:
        self._check_secure("mysql_clear_password")
        yield self._password + b"\0"

    def _check_secure(self, plugin: str) -> None:
        if not self.is_secure:
            raise BackendError(
                _CR_AUTH_PLUGIN_ERR,
                "HY000",
                f"the server wants the password itself, by plugin {plugin!r}; it is sent over TLS or"
                " a unix socket only: set ssl_mode in the shard's address",
            )


_PLUGINS: Final[dict[str, Callable[[ClientAuth, bytes], Answers]]] = {
    CACHING_SHA2: ClientAuth._caching_sha2,
    NATIVE_PASSWORD: ClientAuth._native,
    "client_ed25519": ClientAuth._ed25519,
    "parsec": ClientAuth._parsec,
    "sha256_password": ClientAuth._sha256,
    "dialog": ClientAuth._dialog,
    "mysql_clear_password": ClientAuth._clear,
}


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
