"""A session of a user with `account = "own"` runs at each shard as that user, or is refused by it."""

import pytest

from tests.fixtures.streams import run, value


pytestmark = pytest.mark.db


class TestOwnAccounts:
    @pytest.fixture
    def proxy(self, start_proxy, accounts, config, sharded_database):
        accounts.create("ann", f"ALL ON {sharded_database}.*")
        accounts.create("eve", f"SELECT (id) ON {sharded_database}.customer")
        shared = '[[users]]\nname = "bob"\npassword = "x"\naccount = "shared"\n'
        return start_proxy(config + accounts.toml("ann", "eve") + shared)

    def test_a_change_of_user_is_one_at_the_servers(self, proxy, accounts):
        client = accounts.connect(proxy, "ann", database="commerce:-80")
        run(client, "SET @a = 1")
        for user in ("eve", "ann"):
            accounts.change(client, user, "commerce:-80")
            assert value(client, "SELECT CURRENT_USER()").startswith(f"{user}@")
            assert value(client, "SELECT @a") is None
