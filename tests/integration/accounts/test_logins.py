"""A session of a user with `account = "own"` runs at each shard as that user, or is refused by it."""

import pytest

from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import refused, rows, run, value
from tests.integration.accounts.conftest import Accounts
from tests.integration.conftest import HIGH_IDS, LOW_IDS


pytestmark = pytest.mark.db


class TestOwnAccounts:
    @pytest.fixture
    def proxy(self, start_proxy, accounts, config, sharded_database):
        accounts.create("ann", f"ALL ON {sharded_database}.*")
        accounts.create("eve", f"SELECT (id) ON {sharded_database}.customer")
        shared = '[[users]]\nname = "bob"\npassword = "x"\naccount = "shared"\n'
        return start_proxy(config + accounts.toml("ann", "eve") + shared)

    def test_each_shard_knows_the_user(self, proxy: RunningProxy, accounts: Accounts) -> None:
        ann = accounts.connect(proxy, "ann", database="commerce")
        eve = accounts.connect(proxy, "eve", database="commerce")
        bob = proxy.connect(user="bob", password="x", database="commerce")
        for shard in ("-80", "80-"):
            for client, user in ((ann, "ann"), (eve, "eve")):
                client.select_db(f"commerce:{shard}")
                assert value(client, "SELECT CURRENT_USER()").startswith(f"{user}@")
            bob.select_db(f"commerce:{shard}")
            assert value(bob, "SELECT COUNT(*) FROM mysql.user") > 1

    def test_the_servers_grants_decide(self, proxy: RunningProxy, accounts: Accounts) -> None:
        ann = accounts.connect(proxy, "ann", database="commerce")
        eve = accounts.connect(proxy, "eve", database="commerce")
        for ident in (LOW_IDS[0], HIGH_IDS[0]):
            run(ann, f"INSERT INTO customer (id, n) VALUES ({ident}, 1)")
            assert rows(eve, f"SELECT id FROM customer WHERE id = {ident}") == ((ident,),)
            for sql in (
                f"SELECT secret FROM customer WHERE id = {ident}",
                f"UPDATE customer SET n = 2 WHERE id = {ident}",
                f"DELETE FROM customer WHERE id = {ident}",
            ):
                assert refused(eve, sql)[0] in {1142, 1143}, sql
        assert len(rows(eve, "SELECT id FROM customer")) == 2
        assert refused(eve, "SELECT * FROM mysql.user")[0] in {1142, 1044}

    def test_a_change_of_user_is_one_at_the_servers(self, proxy, accounts):
        client = accounts.connect(proxy, "ann", database="commerce:-80")
        run(client, "SET @a = 1")
        for user in ("eve", "ann"):
            accounts.change(client, user, "commerce:-80")
            assert value(client, "SELECT CURRENT_USER()").startswith(f"{user}@")
            assert value(client, "SELECT @a") is None
