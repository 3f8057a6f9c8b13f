"""A scripted database server: a real listener that speaks the protocol.

`FakeServer` records all commands, and sends the replies set by the test (`on`, `once`), or those of a
real server (`fake_connection`).
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
# Text that occurs only on an election's connection: rules for "SELECT" or "COMMIT" are not for it.
OF_ELECTIONS = ("streamfrom.members", "streamfrom.locks", "SKIP LOCKED", "'streamfrom.")


class FakeServer:
    """The server; start it with `async with`.

    Attributes:
        heard: every command of a relay connection, in order, as text: SQL, or RESET, QUIT,
            INIT_DB <name>, PING, PREPARE <sql>, EXECUTE <sql> <values>, FETCH <rows>,
            LONG_DATA <parameter> <bytes>, CLOSE <sql>.
        controlled: the same for the proxy's own connections: the driver's, and those for elections.
        connections: the open ones, by id.
        logins: how many relay connections have logged in so far.
        read_only: the value for the health check.
        collation: the server's own.
        refusal: the reply to logins instead of OK.
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
        """Crash: stop listening, and break every connection."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self.break_connections()

    def break_connections(self) -> None:
        for connection in list(self.connections.values()):
            connection.abort()

    # --- the script -----------------------------------------------------------------------

    def on(self, text: str, answer: Answer) -> None:
        """Send this reply to every statement that contains *text*; the latest rule goes first."""
        self._always.insert(0, (text, answer))

    def once(self, text: str, *answers: Answer) -> None:
        """Send these replies to the next statements that contain *text*, before any `on`."""
        self._once.append((text, deque(answers)))

    def answer_to(self, sql: str, *, is_election: bool = False) -> Answer | None:
        """Return the reply that the test has set; an election's connection matches only rules with its own text."""

        def is_meant(text: str) -> bool:
            return text in sql and (
                not is_election or any(each in text for each in OF_ELECTIONS)
            )

        for text, answers in self._once:
            if answers and is_meant(text):
                return answers.popleft()
        return next((answer for text, answer in self._always if is_meant(text)), None)

    # --- recorded ---------------------------------------------------------------------------

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
