"""Accounts of every kind, and the two halves of a login played against each other."""

from __future__ import annotations

from streamfrom.proxy.passwords.scramble import stored_native
from streamfrom.proxy.passwords.verifier import Verifier, sha256_crypt
from streamfrom.proxy.tls import ServerKey
from streamfrom.proxy.wire.login.auth import (
    Authenticator,
    Deferred,
    ServerAuth,
    nonce_from,
)
from streamfrom.proxy.wire.server_connection import ServerConnection


def in_pieces(pieces):
    """Return a generator's result, once all of its pieces are done, and their number."""
    count = 0
    while True:
        try:
            next(pieces)
        except StopIteration as ended:
            return ended.value, count
        count += 1


def in_one_go(pieces):
    return in_pieces(pieces)[0]


class PromptAuth(ServerAuth):
    """Checks each proof as it arrives."""

    def receive(self, payload):
        return self._judged(super().receive(payload))

    def _judged(self, step):
        return in_one_go(self.judge()) if isinstance(step, Deferred) else step


class PromptConnection(ServerConnection):
    """Checks each proof as it arrives."""

    def receive_data(self, data):
        events = super().receive_data(data)
        while events and isinstance(events[-1], Deferred):
            events[-1:] = [*in_one_go(self.judge()), *super().receive_data(b"")]
        return events


PASSWORD = "päss"
NONCE = nonce_from(bytes(range(20)))
DICE = bytes(range(32))
SALT = b"\x01abcdefghijklmnopq\x7f;"
CRYPT = "$A$001$" + (SALT + in_one_go(sha256_crypt(PASSWORD.encode(), SALT, 1000))).decode()
NATIVE = "*" + stored_native(PASSWORD.encode()).hex().upper()


KEY = ServerKey()


def verifier(kind: str) -> Verifier:
    """Return a fresh verifier: one with a crypt hash learns, so tests must not share it."""
    if kind == "clear":
        return Verifier.from_password(PASSWORD)
    if kind == "empty":
        return Verifier.from_password("")
    return Verifier.from_hash(NATIVE if kind == "native" else CRYPT)


def nonce_source():
    """Return a source of distinct nonces that are not random."""
    counter = iter(range(1 << 30))
    return lambda: nonce_from(next(counter).to_bytes(20, "little"))


def authenticator(*kinds: str, **options) -> Authenticator:
    """Accounts named like their kind."""
    accounts = {kind: verifier(kind) for kind in kinds}
    return Authenticator(accounts, nonce_source(), b"a secret", **options)
