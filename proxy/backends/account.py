"""The server account under which a session's statements run.

A session of a user with `account = "own"` logs in at every shard with that user's name and password, and the server's
grants decide what it may do. All other sessions, and all of the proxy's own work, use the account of the shard's address.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.config.file import SessionAccount, User
from streamfrom.proxy.config.toml_values import Secret


if TYPE_CHECKING:
    from streamfrom.proxy.config.dsn import Dsn


@dataclass(frozen=True, slots=True)
class Account:
    """The name and the password of a user's own account, or `SHARDS_ACCOUNT`."""

    name: str
    password: Secret

    @property
    def is_own(self) -> bool:
        """False for the account of the shards' addresses."""
        return self is not SHARDS_ACCOUNT

    def at(self, dsn: Dsn) -> Dsn:
        """Return *dsn* with this account's login."""
        return replace(dsn, user=self.name, password=self.password) if self.is_own else dsn


SHARDS_ACCOUNT: Final = Account("", Secret(""))


def account_of(user: User) -> Account:
    """Return the account under which the sessions of *user* run."""
    if user.account is SessionAccount.SHARED:
        return SHARDS_ACCOUNT
    # The configuration refuses `account = "own"` if the password is not known.
    assert user.password is not None
    return Account(user.name, user.password)
