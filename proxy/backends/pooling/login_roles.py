"""The roles that a connection has by its login, for connections whose sessions may have changed theirs.

COM_RESET_CONNECTION undoes no SET ROLE, on neither server, and a procedure may run one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.proxy.wire.commands import query


if TYPE_CHECKING:
    from streamfrom.proxy.backends.account import Account
    from streamfrom.proxy.backends.backend import Backend


_ASK_ROLE: Final = query(b"SELECT CURRENT_ROLE()")


class LoginRoles:
    """CURRENT_ROLE() of a new login of each account, for the accounts one of whose connections may have another."""

    def __init__(self) -> None:
        # None where the next login is to be asked.
        self._by_account: dict[Account, bytes | None] = {}

    async def logged_in(self, backend: Backend) -> None:
        """Ask a new connection, if its account's roles are wanted. Raises BackendLost."""
        if self._by_account and self._by_account.get(backend.account, b"") is None:
            self._by_account[backend.account] = await _ask(backend)

    async def has_them(self, backend: Backend) -> bool:
        """Return False where the last session has, or may have, changed the roles of *backend*. Raises BackendLost."""
        if not backend.may_have_role:
            return True
        at_login = self._by_account.get(backend.account)
        role = None if at_login is None else await _ask(backend)
        backend.may_have_role = False
        if role is not None and role == at_login:
            return True
        # Perhaps the account's default role is another one now: the next login is asked.
        self._by_account[backend.account] = None
        return False


async def _ask(backend: Backend) -> bytes | None:
    (answer,) = await backend.answers([_ASK_ROLE])
    return answer.rows[0] if answer.rows else None
