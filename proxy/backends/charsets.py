"""From the collation id of a login to session variables that the backends understand.

A client names its character set by a number that means something only to its own family of
servers: every MySQL 8 client sends 255, `utf8mb4_0900_ai_ci`, which MariaDB 10.11 does not know
(it would fall back to its default, latin1 out of the box). So the proxy never passes the number on. It uses the backend's name
for the number, else the proxy's own name for it if the backend has that, else utf8mb4. A login is
refused if utf8mb4 could let a value out of its quotes.

If a server's own `sql_mode` changes how a text is read, it is set for every session, because the proxy reads statements by the
variables that a session has set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.proxy.backends.session_variables import Settings, names
from streamfrom.proxy.errors import NoClientCharset
from streamfrom.proxy.wire.constants import CHARSETS, UTF8MB4_CHARSET
from streamfrom.sqlparse_ext.sql_mode import SqlMode


if TYPE_CHECKING:
    from streamfrom.proxy.backends.control_connection import Control


_FALLBACK = ("utf8mb4", "utf8mb4_general_ci")

# A client that escapes its values for one of these must not be treated as utf8mb4, even
# if the servers lack its collation. https://dev.mysql.com/doc/refman/8.4/en/charset-asian-sets.html
# MariaDB's collations without padding have the numbers of the others and 1024.
_UNREAD_IDS = {1: "big5", 84: "big5", 13: "sjis", 88: "sjis", 28: "gbk", 87: "gbk"}
_UNREAD_IDS |= {95: "cp932", 96: "cp932", 248: "gb18030", 249: "gb18030", 250: "gb18030"}
_UNREAD_IDS |= {number + 1024: charset for number, charset in _UNREAD_IDS.items()}
# No server takes a statement in one of these.
_NO_STATEMENTS = frozenset({"ucs2", "utf16", "utf16le", "utf32"})


class Charsets:
    """The collations of the backends, and their own `sql_mode` if it changes how a text is read."""

    def __init__(self) -> None:
        # The collation id of the greeting, with which some clients (PHP's) then log in. It is that of the server's own
        # collation if clients may use it and the proxy can read it.
        self.greeted = UTF8MB4_CHARSET
        self._collations: frozenset[str] = frozenset()
        self._by_id: dict[int, tuple[str, str]] = {}
        self._sql_mode: tuple[tuple[str, str], ...] = ()

    async def learn(self, control: Control) -> None:
        """Query a server. Raises BackendUnavailable and BackendError."""
        rows = await control.rows(
            "SELECT ID, CHARACTER_SET_NAME, COLLATION_NAME,"
            " COLLATION_NAME = @@global.collation_server FROM information_schema.COLLATIONS"
        )
        self._collations = frozenset(name for _, _, name, _ in rows)
        # Some of MariaDB 11 belong to several character sets, and have no id.
        numbered = [(int(row[0]), *row[1:]) for row in rows if row[0]]
        self._by_id = {number: (charset, name) for number, charset, name, _ in numbered}
        own = (
            number
            for number, charset, _, is_own in numbered
            # The greeting has one byte for it.
            if is_own
            and number <= 255
            and number not in _UNREAD_IDS
            and charset not in _NO_STATEMENTS
        )
        self.greeted = next(own, UTF8MB4_CHARSET)
        ((mode,),) = await control.rows("SELECT @@global.sql_mode")
        self._sql_mode = (("sql_mode", str(mode)),) if SqlMode.parse(str(mode)) else ()

    def settings(self, collation_id: int) -> Settings:
        """Return the variables that a login with *collation_id* starts with. Raises NoClientCharset."""
        known = self._by_id.get(collation_id)
        charset, collation = known or CHARSETS.get(collation_id, _FALLBACK)
        if known is None and collation_id in _UNREAD_IDS:
            raise NoClientCharset(_UNREAD_IDS[collation_id])
        if charset in _NO_STATEMENTS:
            raise NoClientCharset(charset)
        if collation not in self._collations:
            charset, collation = _FALLBACK
        found = names(charset, collation)
        return found.with_changes(self._sql_mode) if self._sql_mode else found
