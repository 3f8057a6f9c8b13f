"""From the collation id of a login to session variables that the backends understand.

A client names its character set by a number that means something to its own family of servers
only: every MySQL 8 client says 255, `utf8mb4_0900_ai_ci`, which MariaDB 10.11 does not know
(it would fall back to its default, latin1 out of the box). So the number is never passed on;
its name is, if a backend has it, and utf8mb4 otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.backends.settings import names
from proxy.wire.constants import CHARSETS


if TYPE_CHECKING:
    from proxy.backends.control import Control
    from proxy.backends.settings import Settings


_FALLBACK = ("utf8mb4", "utf8mb4_general_ci")


class Charsets:
    """Which collations the backends have."""

    def __init__(self) -> None:
        self._collations: frozenset[str] = frozenset()

    async def learn(self, control: Control) -> None:
        """Ask a server. Raises BackendUnavailable and BackendError."""
        rows = await control.rows("SELECT COLLATION_NAME FROM information_schema.COLLATIONS")
        self._collations = frozenset(name for (name,) in rows)

    def settings(self, collation_id: int) -> Settings:
        """Return the variables that a login with *collation_id* starts with."""
        charset, collation = CHARSETS.get(collation_id, _FALLBACK)
        if collation not in self._collations:
            charset, collation = _FALLBACK
        return names(charset, collation)
