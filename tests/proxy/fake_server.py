"""A database server by script: a real listener that speaks the protocol and knows a few tricks.

`FakeServer` remembers what it was sent, and answers what the test told it to (`on`, `once`), or what a
server would (`fake_connection`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import count

from streamfrom.proxy.config.dsn import Dsn, SslMode
from streamfrom.proxy.config.toml_values import Secret
from streamfrom.proxy.passwords.verifier import Verifier
from streamfrom.proxy.wire.login.auth import Authenticator
from tests.proxy.fake_answers import Answer, Error
from tests.proxy.fake_connection import NONCE, Connection


MYSQL = "8.4.3"
MARIADB = "10.11.6-MariaDB"
PASSWORD = "sesame-of-the-backend"
# What is said on an election's connection and on no other: rules for "SELECT" or "COMMIT" are not for it.
OF_ELECTIONS = ("streamfrom.members", "streamfrom.locks", "SKIP LOCKED", "'streamfrom.")


class FakeServer:
    """The server; start it with `async with`.

    Attributes:
        heard: every command of a relay connection, in order, as text: SQL, or RESET, QUIT,
            INIT_DB <name>, PING, PREPARE <sql>, EXECUTE <sql> <values>, FETCH <rows>,
            LONG_DATA <parameter> <bytes>, CLOSE <sql>.
        controlled: the same of connections that are no client's: the driver's, and those for elections.
        connections: the open ones, by id.
        logins: how many relay connections have logged in so far.
        read_only: what the health check is told.
        collation: the server's own.
        refusal: answered to logins instead of OK.
    """

    def __init__(self, version: str = MYSQL) -> None:
        self.version = version
        self.heard: list[str] = []
        self.controlled: list[str] = []
        self.connections: dict[int, Connection] = {}
        self.logins = 0
        self.read_only = False
        self.collation = "utf8mb4_general_ci"
        self.refusal: Error | None = None
        self.greets = True
        self.port = 0
        self.authenticator = Authenticator(
            {
                "root": Verifier.from_password(""),
                "app": Verifier.from_password(PASSWORD),
            },
            lambda: NONCE,
            b"decoy",
        )
        self.ids = count(1)
        self._once: list[tuple[str, deque[Answer]]] = []
        self._always: list[tuple[str, Answer]] = []
        self._listener: asyncio.Server | None = None

    async def __aenter__(self) -> FakeServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()

    async def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            lambda: Connection(self), "127.0.0.1", self.port, reuse_address=True
        )
        self.port = self._listener.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Crash: nobody listens, and every connection breaks."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self.break_connections()

    def break_connections(self) -> None:
        for connection in list(self.connections.values()):
            connection.abort()

    # --- the script -----------------------------------------------------------------------

    def on(self, text: str, answer: Answer) -> None:
        """Answer every statement that contains *text* so; the latest rule goes first."""
        self._always.insert(0, (text, answer))

    def once(self, text: str, *answers: Answer) -> None:
        """Answer the next statements that contain *text* so, before any `on`."""
        self._once.append((text, deque(answers)))

    def answer_to(self, sql: str, *, is_election: bool = False) -> Answer | None:
        """Return what the test wants; an election's connection is meant only where a rule names what it says."""

        def is_meant(text: str) -> bool:
            return text in sql and (
                not is_election or any(each in text for each in OF_ELECTIONS)
            )

        for text, answers in self._once:
            if answers and is_meant(text):
                return answers.popleft()
        return next((answer for text, answer in self._always if is_meant(text)), None)

    # --- what was said --------------------------------------------------------------------

    @property
    def relays(self) -> list[Connection]:
        """The open relay connections, oldest first."""
        return [c for c in self.connections.values() if not c.is_control]

    def dsn(self, database: str = "db", user: str = "root", **options: object) -> Dsn:
        fields: dict[str, object] = {
            "host": "127.0.0.1",
            "port": self.port,
            "unix_socket": None,
            "user": user,
            "password": Secret(PASSWORD if user == "app" else ""),
            "database": database,
            "ssl_mode": SslMode.DISABLED,
            "ssl_ca": None,
        }
        return Dsn(**(fields | options))  # type: ignore[arg-type]
