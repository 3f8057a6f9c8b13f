"""Which account a user's sessions log in with."""

from streamfrom.proxy.backends.account import SHARDS_ACCOUNT, Account, account_of
from streamfrom.proxy.config.file import Role, SessionAccount, User
from streamfrom.proxy.config.toml_values import Secret


def test_an_own_account_is_the_users_name_and_password(server):
    user = User("ann", Secret("sesame"), None, Role.USER, account=SessionAccount.OWN)
    account = account_of(user)
    assert account == Account("ann", Secret("sesame"))
    dsn = account.at(server.dsn())
    assert (dsn.user, dsn.password, dsn.port) == ("ann", Secret("sesame"), server.port)
    assert "sesame" not in f"{account!r} {account} {dsn!r} {dsn}"


def test_a_shared_account_is_that_of_the_address_and_no_user_is_named_like_it(server):
    user = User("ann", Secret("sesame"), None, Role.USER)
    assert account_of(user) is SHARDS_ACCOUNT
    assert account_of(user).at(server.dsn()) == server.dsn()
    assert Account("", Secret("")).at(server.dsn()).user == ""
