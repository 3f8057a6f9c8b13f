"""Opening a connection to a server: address, TLS, login, and the settings of every session."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Final

from streamfrom.proxy import net
from streamfrom.proxy.backends.account import SHARDS_ACCOUNT, Account
from streamfrom.proxy.backends.answer_readers import Awaited
from streamfrom.proxy.backends.backend import ASK_ROLE, Backend, checked
from streamfrom.proxy.backends.control_connection import tls_context
from streamfrom.proxy.backends.session_variables import tracking
from streamfrom.proxy.config.dsn import Dsn, SslMode
from streamfrom.proxy.errors import (
    BackendError,
    BackendLost,
    BackendUnavailable,
    NoDescriptor,
    WireError,
    connect_refused,
)
from streamfrom.proxy.wire.client_connection import ClientConnection, LoginPhase
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import Capability


CONNECT_TIMEOUT_S: Final = 5.0
NO_SUCH_FUNCTION: Final = 1305  # the answer of a server without roles to ASK_ROLE
# Sessions that begin later get another login, because rights may be granted and revoked past the proxy.
LOGIN_KEPT_S: Final = 30.0


async def open_backend(
    keyspace: str,
    shard: str,
    dsn: Dsn,
    account: Account = SHARDS_ACCOUNT,
    *,
    database: str | None,
    variant: int = 0,
    program: str | None = None,
) -> Backend:
    """Connect, log in with *program* as the connection attribute `program_name`, and return the connection.

    Raises BackendUnavailable if the server cannot be reached, or goes away meanwhile; BackendError, the server's own, for a refused login.
    """
    backend = Backend(keyspace, shard, account, variant)
    backend.outdated_s = time.monotonic() + LOGIN_KEPT_S
    dsn = account.at(dsn)
    wire = ClientConnection(
        dsn.user,
        dsn.password.reveal(),
        dice=secrets.token_bytes(32),
        database=database,
        options=variant,
        attributes={} if program is None else {"program_name": program},
        wants_tls=dsn.ssl_mode is not SslMode.DISABLED,
        requires_tls=dsn.ssl_mode not in {SslMode.DISABLED, SslMode.PREFERRED},
        is_secure=dsn.unix_socket is not None,
    )
    login = _LoginReader(wire, dsn)
    backend.expect(login)

    def owner_of(link: net.Link) -> Backend:
        backend.link = login.link = link
        return backend

    try:
        link = await net.connect(
            owner_of,
            host=dsn.host,
            port=dsn.port,
            unix_socket=dsn.unix_socket,
            timeout_s=CONNECT_TIMEOUT_S,
        )
    except TimeoutError:
        raise BackendUnavailable(keyspace, shard, f"{dsn}: no answer") from None
    except OSError as error:
        if net.is_out_of_descriptors(error):
            raise NoDescriptor(keyspace, shard) from None
        raise BackendUnavailable(keyspace, shard, f"{dsn}: {error}") from None
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await login.future
            greeting = wire.greeting
            backend.thread_id = greeting.connection_id
            backend.database = database
            backend.keeps_kinds = "MariaDB" not in greeting.server_version
            backend.tracking = tracking(
                greeting.server_version, ignores_space=bool(variant & Capability.IGNORE_SPACE)
            )
            answers = await backend.answers([query(backend.tracking), ASK_ROLE])
            refusal = answers[1].error
            has_roles = refusal is None or refusal.code != NO_SUCH_FUNCTION
            # MariaDB lets an account whose password has expired log in, and refuses all but SET.
            checked(answers[: 1 + has_roles])
            backend.login_role = answers[1].rows
    except BaseException as error:
        link.abort()  # no session will ever use or close it
        if isinstance(error, BackendError):
            raise connect_refused(keyspace, shard, dsn.server, error) from None
        if not isinstance(error, BackendLost | WireError | OSError):
            raise
        lost = f"TLS failed: {link.fault}" if link.fault else "gone in the login"
        reason = {TimeoutError: "login timed out", BackendLost: lost}
        text = f"{dsn}: {reason.get(type(error), error)}"
        raise BackendUnavailable(keyspace, shard, text) from None
    return backend


class _LoginReader(Awaited[None]):
    """Reads a login, whose packets are no answers to commands."""

    link: net.Link

    def __init__(self, wire: ClientConnection, dsn: Dsn) -> None:
        super().__init__()
        self._wire = wire
        self._dsn = dsn

    def data_received(self, data: bytes) -> bytes | None:
        """Process the server's packets, as `AnswerReader.data_received`."""
        wire = self._wire
        try:
            phase = wire.receive_data(data)
            if answer := wire.data_to_send():
                self.link.write(answer)
            if phase is LoginPhase.TLS:
                self._start_tls()
            elif phase is LoginPhase.READY:
                self.succeed(None)
        except (WireError, BackendError, OSError) as error:
            self.fail(error)
        return b"" if self.future.done() else None

    def _start_tls(self) -> None:
        """Switch to TLS. Raises OSError if the file of the authorities cannot be read."""
        context = tls_context(self._dsn)
        assert context is not None
        hostname = self._dsn.host if context.check_hostname else None
        self.link.start_tls(context, server_side=False, hostname=hostname, early=b"")
        self._wire.tls_started()
        self.link.write(self._wire.data_to_send())

    def answer_completed(self) -> None:
        """Do nothing more: `succeed` has woken the sender."""

    connection_lost = Awaited.fail
