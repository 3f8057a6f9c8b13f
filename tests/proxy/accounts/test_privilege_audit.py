"""What an operator is told, word for word."""

from streamfrom.proxy.accounts.grants import read_grants
from streamfrom.proxy.accounts.privilege_audit import BackendAccount, ShardAccounts, findings
from streamfrom.proxy.config.file import Role, Secret, User


def user(name, role=Role.READWRITE, keyspaces=None, tables=None):
    allowed = None if keyspaces is None else frozenset(keyspaces)
    return User(name, Secret(""), None, role, allowed, tables=tables)


def account(name, *lines, host="10.%"):
    return BackendAccount(name, host, read_grants(lines))


ONE_FOR_ALL = account("sf", "GRANT SELECT, INSERT, UPDATE, RELOAD ON *.* TO `sf`@`10.%`")
OF_ALPHA = account("sf_a", "GRANT SELECT, INSERT ON `alpha`.* TO `sf_a`@`10.%`")
READER = account(
    "ro", "GRANT USAGE ON *.* TO `ro`@`%`", "GRANT SELECT ON `alpha`.* TO `ro`@`%`"
)


def alpha(owner=ONE_FOR_ALL, readonly=None, **more):
    return ShardAccounts("alpha", "0", "db1:3306", "alpha", owner, readonly, **more)


def beta(owner=ONE_FOR_ALL, server="db1:3306"):
    return ShardAccounts("beta", "0", server, "be_ta", owner)


def told(users, *shards):
    return [
        (each.level, each.place, ": ".join(filter(None, (each.text, each.cure))))
        for each in findings(users, shards)
    ]


def test_nothing_is_said_where_everybody_may_do_everything():
    assert told([user("a"), user("b", Role.ADMIN)], alpha(), beta()) == []


def test_a_reader_without_an_account_of_readers_is_held_back_by_the_proxy_alone():
    users = [user("r1", Role.READONLY), user("r2", Role.READONLY), user("w")]
    assert told(users, alpha()) == [
        (
            "warning",
            "alpha/0",
            "only the proxy keeps users r1, r2 from writing, as the shard has no readonly account;"
            ' say readonly = "mysql://streamfrom_alpha_reader:<password>@" and run on its server:'
            " CREATE USER 'streamfrom_alpha_reader'@'10.%' IDENTIFIED BY '<password>';"
            " GRANT SELECT, SHOW VIEW ON `alpha`.* TO 'streamfrom_alpha_reader'@'10.%'",
        )
    ]


def test_a_reader_who_does_not_see_the_keyspace_needs_no_account_there():
    users = [user("r", Role.READONLY, ["alpha"])]
    assert told(users, alpha(OF_ALPHA, READER), beta()) == [
        ("ok", "alpha/0", "readonly account 'ro'@'10.%' may read and no more")
    ]


def test_an_account_of_readers_that_can_write_is_no_wall():
    loose = account(
        "ro",
        "GRANT `r`@`%` TO `ro`@`10.%`",
        "GRANT SELECT, INSERT, DELETE ON `alpha`.* TO `ro`@`10.%`",
        "GRANT FILE ON *.* TO PUBLIC",
    )
    assert told([user("r", Role.READONLY)], alpha(readonly=loose)) == [
        (
            "warning",
            "alpha/0",
            "readonly account 'ro'@'10.%' may do more than read (DELETE, INSERT on `alpha`.*, FILE on"
            " *.*), from which only the proxy keeps readonly users; run there:"
            " REVOKE `r`@`%` FROM 'ro'@'10.%'; REVOKE FILE ON *.* FROM PUBLIC;"
            " REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'ro'@'10.%';"
            " GRANT SELECT, SHOW VIEW ON `alpha`.* TO 'ro'@'10.%'",
        )
    ]


def test_an_account_of_readers_that_is_refused_is_a_fault_and_one_not_reached_is_not():
    refused = BackendAccount("ro", trouble="Access denied for user 'ro'@'h'")
    replicas = (("db2:3306", refused), ("db3:3306", BackendAccount("ro")), ("db4:3306", READER))
    assert told([], alpha(readonly=refused, replicas=replicas)) == [
        (
            "fault",
            "alpha/0",
            "readonly account 'ro'@'%': Access denied for user 'ro'@'h'; readonly users are refused"
            " there",
        ),
        (
            "fault",
            "alpha/0",
            "readonly account 'ro'@'%' at replica db2:3306: Access denied for user 'ro'@'h'; readonly"
            " users are refused there",
        ),
        (
            "ok",
            "alpha/0",
            "readonly account 'ro'@'10.%' at replica db4:3306 may read and no more",
        ),
    ]


def test_an_account_that_reaches_a_hidden_keyspace_is_told_with_one_that_does_not():
    users = [user("a", keyspaces=["alpha"]), user("all")]
    assert told(users, alpha(), beta()) == [
        (
            "warning",
            "alpha/0",
            "account 'sf'@'10.%' of primary reaches keyspace beta too, which user a must not see and"
            " only the proxy hides; name an account of its own in primary and run on its server:"
            " CREATE USER 'streamfrom_alpha'@'10.%' IDENTIFIED BY '<password>';"
            " GRANT INSERT, SELECT, UPDATE ON `alpha`.* TO 'streamfrom_alpha'@'10.%'",
        )
    ]


def test_with_an_account_for_each_keyspace_nothing_is_told():
    of_beta = account("sf_b", "GRANT ALL PRIVILEGES ON `be\\_ta`.* TO `sf_b`@`10.%`")
    users = [user("a", keyspaces=["alpha"]), user("b", keyspaces=["beta"])]
    assert told(users, alpha(OF_ALPHA), beta(of_beta)) == []


def test_a_keyspace_on_another_server_is_out_of_reach():
    assert told([user("a", keyspaces=["alpha"])], alpha(), beta(server="db2:3306")) == []


def test_the_account_of_readers_is_looked_at_for_readers_and_the_other_for_the_others():
    wide = account("ro", "GRANT SELECT ON *.* TO `ro`@`%`")
    reader, writer = user("r", Role.READONLY, ["alpha"]), user("w", keyspaces=["alpha"])
    shards = alpha(OF_ALPHA, wide), beta()
    (line,) = [text for level, _, text in told([reader, writer], *shards) if level == "warning"]
    assert line.startswith(
        "account 'ro'@'10.%' of readonly reaches keyspace beta too, which user r "
    )
    assert line.endswith(
        " CREATE USER 'streamfrom_alpha_reader'@'10.%' IDENTIFIED BY '<password>';"
        " GRANT SELECT, SHOW VIEW ON `alpha`.* TO 'streamfrom_alpha_reader'@'10.%'"
    )
    assert told([writer], *shards) == [
        ("ok", "alpha/0", "readonly account 'ro'@'10.%' may read and no more")
    ]


def test_what_recovery_needs_goes_along_to_a_new_account():
    owner = account(
        "sf",
        "GRANT ALL PRIVILEGES ON `%`.* TO `sf`@`%`",
        "GRANT XA_RECOVER_ADMIN ON *.* TO sf@`%`",
    )
    (line,) = told([user("a", keyspaces=["alpha"])], alpha(owner), beta())
    assert line[2].endswith(
        "; GRANT ALL PRIVILEGES ON `alpha`.* TO 'streamfrom_alpha'@'10.%';"
        " GRANT XA_RECOVER_ADMIN ON *.* TO 'streamfrom_alpha'@'10.%'"
    )


def test_users_for_whom_no_account_is_narrow_enough_are_named():
    users = [
        user("p", Role.PRODUCER),
        user("c", Role.CONSUMER, tables=frozenset({(None, "t")})),
        user("t", tables=frozenset({("alpha", "t")})),
    ]
    said = " on the servers its statements run under accounts that others share"
    assert told(users, alpha()) == [
        ("info", "user p", f"the proxy holds this user to role producer:{said}"),
        (
            "info",
            "user c",
            f"the proxy holds this user to role consumer and tables:{said}",
        ),
        ("info", "user t", f"the proxy holds this user to tables:{said}"),
    ]


def test_names_are_made_and_quoted_so_that_they_can_be_pasted():
    shard = ShardAccounts(
        "my shop's keyspace of long name", "0", "s", "my`sh_op", account("o'brien")
    )
    ((_, _, text),) = told([user("r", Role.READONLY)], shard)
    assert "CREATE USER 'streamfrom_my_shop_s_keys_reader'@'10.%' IDENTIFIED" in text
    assert "ON `my``sh\\_op`.* TO" in text


def test_on_mysql_a_new_account_must_name_its_password_to_change_it():
    owner = BackendAccount("sf", on_mysql=True)
    ((_, _, text),) = told([user("r", Role.READONLY)], alpha(owner))
    assert "IDENTIFIED BY '<password>' PASSWORD REQUIRE CURRENT; GRANT SELECT" in text
