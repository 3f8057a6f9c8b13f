"""The server's side of a login, as a generator for each attempt.

    begin ──┬─ proof fits the account's plugin ───────────┬─ right ──────────────► Authenticated
            │                                             ├─ wrong ──────────────► AccessDenied
            └─ other plugin, or COM_CHANGE_USER           └─ only a crypt hash known:
                 └─ AuthSwitch with a nonce ─ proof ───────┘    "full authentication": the
                                                              password itself, over TLS or RSA

The caller chooses the moment when a proof is judged: it gets a ``Deferred``, and calls ``judge``. So guesses can wait, and
the work for a crypt hash can be done in pieces.

A step returns the packet to send, and the last step returns ``Authenticated``. Every refusal raises, so a caller cannot overlook
it. A login of an unknown user takes the same steps with a decoy that looks like one of the accounts, costs the same work,
and gets the same answers.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase.html
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from streamfrom.proxy.errors import AccessDenied
from streamfrom.proxy.passwords.scramble import (
    certificate_signature,
    is_native_proof,
    is_sha2_proof,
    stored_sha2,
    unmasked_password,
)
from streamfrom.proxy.passwords.verifier import Verifier
from streamfrom.proxy.wire.constants import CACHING_SHA2, NATIVE_PASSWORD, NONCE_BYTES
from streamfrom.proxy.wire.login.handshake import encode_auth_more_data, encode_auth_switch


if TYPE_CHECKING:
    from streamfrom.proxy.wire.login.handshake import LoginRequest


# MySQL's own limit. Without one, a stranger could have 64 KiB hashed 5,000 times.
PASSWORD_BYTES_MAX: Final = 256

_FAST_OK: Final = encode_auth_more_data(b"\x03")
_FULL_NEEDED: Final = encode_auth_more_data(b"\x04")
_WANTS_PUBLIC_KEY: Final = b"\x02"


def nonce_from(dice: bytes) -> bytes:
    """Turn 20 random bytes into a nonce: no byte is zero or above 0x7f.

    Connector/J and the mysql command line read nonces as text; 139 of 140 bits remain.
    """
    if len(dice) != NONCE_BYTES:
        raise ValueError(f"a nonce is made of {NONCE_BYTES} bytes, not {len(dice)}")
    return bytes(byte % 127 + 1 for byte in dice)


class RsaKey(Protocol):
    """The key pair for passwords sent without TLS."""

    def public_pem(self) -> bytes:
        """Return the public half as PEM (SubjectPublicKeyInfo)."""

    def decrypt(self, data: bytes) -> bytes:
        """Undo RSA OAEP with SHA-1 and MGF1-SHA-1; ValueError if that fails."""


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The proof of a login. Only a finished ``ServerAuth`` makes one.

    info: the text of the OK packet to come. ahead: a payload to send before it.
    """

    user: str
    info: bytes = field(default=b"", compare=False)
    ahead: bytes = field(default=b"", compare=False)


@dataclass(frozen=True, slots=True)
class Deferred:
    """A proof has come, and ``judge`` judges it. *is_costly*: that takes milliseconds or more."""

    is_costly: bool


# Bytes are a payload to send, which the client answers.
Step = bytes | Deferred | Authenticated
# It is sent the client's answer. After a costly Deferred it yields None after each piece of the work.
_Steps = Generator[bytes | Deferred | None, Any, Authenticated]


class Authenticator:
    """The accounts and keys that all logins of one listener share.

    accounts: the verifiers of users, by name; names are compared byte for byte, as servers do.
    nonces: draws a fresh nonce, see ``nonce_from``.
    decoy_seed: any secret bytes; makes the decoys' hashes.
    rsa_key: for full authentication without TLS, which is refused if the key is None.
    certificate_sha256: SHA-256 of the TLS certificate in DER, if the greeting announces
        MariaDB 11.4 or newer, whose clients expect the signature. Else None.
    """

    def __init__(
        self,
        accounts: Mapping[str, Verifier],
        nonces: Callable[[], bytes],
        decoy_seed: bytes,
        *,
        rsa_key: RsaKey | None = None,
        certificate_sha256: bytes | None = None,
    ) -> None:
        self.nonces = nonces
        self.rsa_key = rsa_key
        self.certificate_sha256 = certificate_sha256
        self._decoy_seed = decoy_seed
        self.replace(accounts)

    def replace(self, accounts: Mapping[str, Verifier]) -> None:
        """Replace the accounts for future logins; a login that has begun keeps the former ones."""
        self._accounts = accounts
        # Decoys are of the same kinds as the accounts: else the plugin that a refused login is
        # asked for would reveal which names exist.
        self._decoys = [
            verifier.decoy(self._decoy_seed)
            for verifier in accounts.values() or [Verifier.from_password("")]
        ]

    def account(self, user: str) -> Verifier | None:
        """Return the account of *user*, None for an unknown name; another object once it has been changed."""
        return self._accounts.get(user)

    def verifier_of(self, user: str) -> tuple[Verifier, bool]:
        """Return the account's verifier and True, or a decoy and False.

        The decoy depends only on the name, so asking twice reveals no more than asking once.
        """
        account = self._accounts.get(user)
        if account is not None:
            return account, True
        return self._decoys[zlib.crc32(user.encode()) % len(self._decoys)], False


def _plugin_for(verifier: Verifier, asked: str, greeted: str) -> str:
    """Return *asked* if *verifier* can check proofs of that plugin, else the plugin that it can.

    greeted: the plugin in the greeting, for a client that asks for something else altogether;
        libmariadb without the plugin that it should use asks for `dummy_fallback_auth`.
    """
    if verifier.native is None:
        return CACHING_SHA2
    if verifier.sha2 is None:
        return NATIVE_PASSWORD
    return asked if asked in (NATIVE_PASSWORD, CACHING_SHA2) else greeted


@dataclass(eq=False, repr=False)
class ServerAuth:
    """One login attempt.

    ``begin`` once with the client's request, ``receive`` every further packet, and ``judge`` every ``Deferred``, until an
    ``Authenticated`` comes back. After AccessDenied the connection must close.
    """

    _authenticator: Authenticator
    _login: LoginRequest
    _: KW_ONLY
    host: str
    nonce: bytes  # the nonce in force: that of the greeting, later that of the last switch
    greeted_plugin: str = CACHING_SHA2
    is_secure: bool = False  # no third party can listen, so clear text is fine
    is_tls: bool = False  # so the certificate may need its signature
    _steps: _Steps = field(init=False)

    def __post_init__(self) -> None:
        self._verifier, self._is_known = self._authenticator.verifier_of(self._login.user)
        self._has_password = not _is_nothing(self._login.response)

    def begin(self, *, is_change: bool = False) -> Step:
        """Take the first proof. *is_change*: it came with COM_CHANGE_USER."""
        self._steps = self._attempt(is_change=is_change)
        return self.receive(None)

    def receive(self, payload: bytes | None) -> Step:
        """Process the client's next packet."""
        step = self._advance(payload)
        assert step is not None, "what comes in pieces is judged"
        return step

    def judge(self) -> Generator[None, None, Step]:
        """Judge the proof that was deferred, in pieces. Raises AccessDenied."""
        while (step := self._advance(None)) is None:
            yield
        return step

    def _advance(self, payload: bytes | None) -> Step | None:
        try:
            return self._steps.send(payload)
        except StopIteration as end:
            proof: Authenticated | None = end.value
            assert proof is not None, "a login that has ended is not asked again"
            return proof

    def _attempt(self, *, is_change: bool) -> _Steps:
        plugin, proof = self._login.plugin, self._login.response
        if plugin is None:
            # Without PLUGIN_AUTH a client speaks native and cannot be asked to switch.
            plugin = NATIVE_PASSWORD
        else:
            asked, plugin = plugin, _plugin_for(self._verifier, plugin, self.greeted_plugin)
            # libmysql sends nothing when the greeting names another plugin than its own, and
            # waits to be asked again.
            is_silent = plugin != self.greeted_plugin and not proof
            if is_change or plugin != asked or is_silent:
                # As servers do: libmariadb answers COM_CHANGE_USER with the nonce of its login, whatever the switch contains.
                if not (is_change and plugin == NATIVE_PASSWORD):
                    # A fresh one: the greeting's has been answered, and an answer must prove one nonce only.
                    self.nonce = self._authenticator.nonces()
                proof = yield encode_auth_switch(plugin, self.nonce)
        yield Deferred(is_costly=False)
        self._has_password = not _is_nothing(proof)
        if plugin == NATIVE_PASSWORD:
            return self._native(proof)
        return (yield from self._sha2(proof))

    def _native(self, proof: bytes) -> Authenticated:
        stored = self._verifier.native
        # A client without plugins may name an account that has no native hash.
        matches = is_native_proof(proof, self.nonce, stored or bytes(20)) and stored is not None
        if self._verifier.is_empty:
            matches = _is_nothing(proof)
        return self._decide(matches=matches, info=self._signature())

    def _sha2(self, proof: bytes) -> _Steps:
        verifier = self._verifier
        if _is_nothing(proof):
            return self._decide(matches=verifier.is_empty)
        stored = verifier.sha2 or verifier.learnt
        given = proof, self.nonce, stored or bytes(32)
        # MariaDB's R2DBC leaves out the last byte of the greeting's nonce.
        is_right = is_sha2_proof(*given) | is_sha2_proof(proof, self.nonce[:-1], given[2])
        is_of_sqlx = is_sha2_proof(*given, nonce_first=True)
        if stored is not None and not verifier.is_empty:
            if is_right:
                return self._decide(matches=True, ahead=_FAST_OK)
            if is_of_sqlx:
                # Without the word "fast": sqlx 0.8 reads no OK behind it.
                return self._decide(matches=True)
        key = None if self.is_secure else self._authenticator.rsa_key
        if verifier.crypt is None or not (self.is_secure or key):
            return self._decide(matches=False)
        # Even after a wrong proof for a cached account: a decoy never gets into the cache,
        # and this must not distinguish the two.
        payload = yield _FULL_NEEDED
        # The client cannot send its password in the clear here, so it asks for a key to encrypt
        # it with.
        if key is not None and payload == _WANTS_PUBLIC_KEY:
            payload = yield encode_auth_more_data(key.public_pem())
        yield Deferred(is_costly=True)
        password = payload if key is None else _decrypted(key, payload, self.nonce)
        if not password.endswith(b"\0") or len(password) > PASSWORD_BYTES_MAX + 1:
            return self._decide(matches=False)
        password = password[:-1]
        matches = yield from verifier.is_password(password)
        if matches and self._is_known:
            # From now on a proof is enough, without the slow hash: MySQL keeps such a cache for
            # the same reason, and caching_sha2_password is named after it.
            verifier.learnt = stored_sha2(password)
        return self._decide(matches=matches)

    def _decide(self, *, matches: bool, info: bytes = b"", ahead: bytes = b"") -> Authenticated:
        # Both are looked at only here, behind all the work, so that an unknown name costs the
        # same.
        if not (matches and self._is_known):
            raise AccessDenied(self._login.user, self.host, has_password=self._has_password)
        return Authenticated(self._login.user, info, ahead)

    def _signature(self) -> bytes:
        """Return the certificate's signature, if this client looks for one."""
        certificate = self._authenticator.certificate_sha256
        stored = self._verifier.native
        if not self.is_tls or certificate is None or stored is None or self._verifier.is_empty:
            return b""
        return certificate_signature(stored, self.nonce, certificate)


def _decrypted(key: RsaKey, payload: bytes, nonce: bytes) -> bytes:
    try:
        return unmasked_password(key.decrypt(payload), nonce)
    except ValueError:
        return b""


def _is_nothing(proof: bytes) -> bool:
    # Some clients send a lone NUL for "no password".
    return proof in (b"", b"\0")
