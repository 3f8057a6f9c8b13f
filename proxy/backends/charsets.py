"""From the collation id of a login to session variables that the backends understand.

A client names its character set by a number that means something to its own family of servers
only: every MySQL 8 client says 255, `utf8mb4_0900_ai_ci`, which MariaDB 10.11 does not know
(it would fall back to its default, latin1 out of the box). So the number is never passed on;
its name is, as the backend knows the number, or as this proxy does and the backend has the name;
and utf8mb4 otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.backends.settings import names
from proxy.errors import NoClientCharset
from proxy.wire.constants import CHARSETS


if TYPE_CHECKING:
    from proxy.backends.control import Control
    from proxy.backends.settings import Settings


_FALLBACK = ("utf8mb4", "utf8mb4_general_ci")

# A byte below 0x80 may be part of another character, or mean another one: the statement lexers
# read bytes.
_NOT_READ = frozenset({"gbk", "gb18030", "sjis", "cp932", "big5", "swe7"})
# No server takes a statement in one of these.
_NO_STATEMENTS = frozenset({"ucs2", "utf16", "utf16le", "utf32"})


class Charsets:
    """Which collations the backends have."""

    def __init__(self) -> None:
        self._collations: frozenset[str] = frozenset()
        self._by_id: dict[int, tuple[str, str]] = {}

    async def learn(self, control: Control) -> None:
        """Ask a server. Raises BackendUnavailable and BackendError."""
        rows = await control.rows(
            "SELECT ID, CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLLATIONS"
        )
        self._collations = frozenset(name for _, _, name in rows)
        # Some of MariaDB 11 belong to several character sets, and have no id.
        self._by_id = {int(number): (charset, name) for number, charset, name in rows if number}

    def settings(self, collation_id: int) -> Settings:
        """Return the variables that a login with *collation_id* starts with.

        Raises:
            NoClientCharset: no statement can be written in it.
        """
        known = self._by_id.get(collation_id)
        charset, collation = known or CHARSETS.get(collation_id, _FALLBACK)
        if charset in _NO_STATEMENTS:
            raise NoClientCharset(charset)
        if charset in _NOT_READ or collation not in self._collations:
            charset, collation = _FALLBACK
        return names(charset, collation)
