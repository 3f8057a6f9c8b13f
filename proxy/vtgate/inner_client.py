"""A client of this proxy inside its own process: gRPC calls and status page actions run in sessions like all others.

Login limits and delays, the servers' grants, KILL, PROCESSLIST and shutdown therefore work as on the wire, without
a second implementation. The session takes the host of the caller, not that of the socket pair.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.net import Link, Owner, is_loopback
from streamfrom.proxy.passwords.verifier import Verifier
from streamfrom.proxy.wire.client_connection import ClientConnection, LoginPhase
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.login.auth import Authenticator
from streamfrom.proxy.wire.row_collector import RowCollector


if TYPE_CHECKING:
    from streamfrom.proxy.sessions.services import Services
    from streamfrom.proxy.wire.resultset import Ok

    Accept = Callable[[Link], Owner]
    AcceptWith = Callable[[Services, Link], Owner]


# Bytes that are read at once become one message; one row may be longer.
READ_BYTES: Final = 64 << 10


class InnerLink(Link):
    """One end of a socket pair that stands for a client elsewhere.

    owner_of: as in `Link`.
    host: the client's address.
    """

    __slots__ = ("_host",)

    def __init__(self, owner_of: Accept, host: str) -> None:
        self._host = host
        super().__init__(owner_of)

    @property
    def peer(self) -> str:
        """The client's host."""
        return self._host

    @property
    def is_loopback(self) -> bool:
        """Whether the client is on this machine."""
        return is_loopback(self._host)


class InnerClient:
    """A session of this proxy that runs one statement after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The column definitions of the statement's rows, once they have arrived.
        self.columns: list[bytes] = []
        self._ok: Ok | None = None
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(
        cls, accept: Accept, host: str, user: str, password: str, database: str
    ) -> InnerClient:
        """Return a session that is logged in. Raises BackendError, worded as on the wire, if the login is refused.

        accept: makes the session of a link.
        host: the client's host.
        database: a target as in USE, which is a keyspace or one of its shards.
        """
        ours, theirs = socket.socketpair()
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: InnerLink(accept, host), theirs)
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=READ_BYTES)
        client = cls(reader, writer)
        wire = ClientConnection(
            user, password, dice=secrets.token_bytes(32), database=database, is_secure=True
        )
        try:
            while wire.phase is not LoginPhase.READY:
                wire.receive_data(await client._read())
                writer.write(wire.data_to_send())
        except BaseException:
            client.close()
            raise
        return client

    async def rows(self, sql: bytes) -> AsyncIterator[list[bytes]]:
        """Run a statement; yield the payloads of its rows, some at a time, [] once the columns are known.

        Rows are read, and so sent to this session, only as they are consumed. Raises BackendError if it fails, perhaps after some rows.
        """
        self._writer.write(query(sql))
        collector = RowCollector()
        is_told = False
        while not collector.done:
            found = collector.feed(await self._read())
            if not is_told and collector.head_complete and collector.columns:
                is_told = True
                self.columns = collector.columns
                yield []
            if found:
                yield found
        if collector.error is not None:
            raise collector.error.exception()
        self._ok = collector.ok

    async def run(self, sql: bytes) -> Ok:
        """Run a statement that returns no rows. Raises BackendError."""
        async for _ in self.rows(sql):
            pass
        assert self._ok is not None
        return self._ok

    async def _read(self) -> bytes:
        try:
            data = await self._reader.read(READ_BYTES)
        except OSError:
            data = b""
        if not data:
            # The session sends the reason before it ends, if it can.
            raise BackendError(2013, "HY000", "Lost connection to the proxy's own session")
        return data

    def close(self) -> None:
        """Close the session, whatever it is doing."""
        self._writer.transport.abort()


async def run_as(
    services: Services, accept: AcceptWith, user: str, host: str, database: str, sql: bytes
) -> int:
    """Run a statement without rows as a user who has logged in elsewhere in this process, as on the status page.

    Return the number of changed rows. The session uses its own password for that user, which no other client learns.
    Raises BackendError if there is no place for the session, the user is gone, or the statement fails.
    """
    if user not in services.users:
        raise BackendError(1045, "28000", f"Access denied for user '{user}': it was removed")
    password = secrets.token_urlsafe()
    verifier = Verifier.from_password(password)
    trusting = replace(
        services,
        authenticator=Authenticator({user: verifier}, services.authenticator.nonces, b""),
    )
    client = await InnerClient.open(
        lambda link: accept(trusting, link), host, user, password, database
    )
    with closing(client):
        return (await client.run(sql)).affected_rows
