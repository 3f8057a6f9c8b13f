from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.proxy.backends.account import SHARDS_ACCOUNT, Account
from streamfrom.proxy.backends.pooling.connection_handover import LoginRoles
from streamfrom.proxy.config.toml_values import Secret


class Connection:
    """A connection with a role."""

    def __init__(self, role, account=SHARDS_ACCOUNT):
        self.role = role
        self.account = account
        self.may_have_role = False
        self.asked = 0

    async def answers(self, packets):
        self.asked += len(packets)
        return [SimpleNamespace(rows=[] if self.role is None else [self.role])]


def connection(*args) -> Any:
    return Connection(*args)


async def test_roles_are_those_of_a_later_login_of_the_same_account():
    roles, changed = LoginRoles(), connection(b"other")
    changed.may_have_role = True
    # What the login gave is not known yet.
    assert not await roles.has_them(changed)
    bob = connection(b"other", Account("bob", Secret("")))
    await roles.logged_in(bob)
    await roles.logged_in(connection(b"r"))
    for role, is_kept in ((b"r", True), (b"other", False)):
        backend = connection(role)
        backend.may_have_role = True
        assert await roles.has_them(backend) == is_kept
    assert bob.asked == 0


@pytest.mark.parametrize("account", [SHARDS_ACCOUNT, Account("bob", Secret(""))])
async def test_a_server_without_roles_has_none_to_compare(account):
    roles = LoginRoles()
    for _ in range(2):
        backend = connection(None, account)
        backend.may_have_role = True
        assert not await roles.has_them(backend)
        await roles.logged_in(connection(None, account))
