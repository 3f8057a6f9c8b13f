"""Servers are asked for what their accounts may do; real ones are in tests/integration/test_walls.py."""

from dataclasses import replace

import pytest

from streamfrom.proxy.accounts.grant_discovery import ask
from streamfrom.proxy.config.file import Role, Secret, User
from tests.proxy.fake_answers import Error, Rows
from tests.proxy.rigs import config_of


READER = User("r", Secret(""), None, Role.READONLY, None)
ROOT = User("root", Secret(""), None, Role.READWRITE, None)


def told(server, *lines, version="8.4.3", who="app@10.%"):
    """Have *server* say who the account is, and what it may do."""
    values = (who.encode(), version.encode(), b"host", b"3306", b"/data/")
    server.on("SELECT CURRENT_USER()", Rows(tuple("abcde"), (values,)))
    server.on("SHOW GRANTS", Rows(("grants",), tuple((line.encode(),) for line in lines)))


def config(server, *users, **second):
    """Return a configuration of one shard; *second* is its readonly account."""
    made = config_of(server, users=users)
    (keyspace,) = made.keyspaces
    (shard,) = keyspace.shards
    if second:
        shard = replace(shard, readonly=server.dsn(**second))
    return replace(made, keyspaces=(replace(keyspace, shards=(shard,)),))


async def test_no_server_is_asked_where_nobody_is_held_back(server):
    assert await ask(config(server, ROOT)) == []
    assert await ask(config(server)) == []
    assert not server.connections


async def test_an_account_is_asked_with_the_roles_that_it_may_set_on_mysql(server):
    told(
        server,
        "GRANT SELECT ON `db`.* TO `app`@`10.%`",
        "GRANT `a`@`%`,`b`@`%` TO `app`@`10.%`",
    )
    (line,) = await ask(config(server, ROOT, user="app"))
    assert line.text == "readonly account 'app'@'10.%' may read and no more"
    assert "SHOW GRANTS FOR CURRENT_USER() USING `a`@`%`, `b`@`%`" in server.controlled


async def test_on_mariadb_each_role_is_set_and_shown(server):
    told(
        server,
        "GRANT `a` TO `app`@`10.%`",
        "GRANT `b` TO `app`@`10.%`",
        version="10.11.9-MariaDB",
    )
    await ask(config(server, ROOT, user="app"))
    start = server.controlled.index("SET ROLE `a`")
    assert server.controlled[start : start + 4] == [
        "SET ROLE `a`",
        "SHOW GRANTS",
        "SET ROLE `b`",
        "SHOW GRANTS",
    ]


async def test_an_account_that_may_not_log_in_is_a_fault_with_the_servers_words(server):
    told(server)
    (line,) = await ask(config(server, ROOT, user="stranger"))
    assert line.level == "fault"
    assert line.text.startswith(
        "readonly account 'stranger'@'%': shard '-' of keyspace 'plain' at "
    )
    assert "Access denied" in line.text


async def test_a_server_that_is_away_says_nothing_and_what_needs_no_server_is_said(server):
    server.stop()
    (line,) = await ask(config(server, ROOT, READER))
    assert line.text.startswith("only the proxy keeps user r from writing")
    assert await ask(config(server, READER, user="app")) == []


@pytest.mark.parametrize("code", [1142, 1227])
async def test_one_who_may_not_even_ask_is_told_in_the_servers_words(server, code):
    told(server)
    server.on("SHOW GRANTS", Error(code, "denied", "42000"))
    (line,) = await ask(config(server, READER, user="app"))
    assert (line.level, line.text.partition(": ")[2]) == (
        "fault",
        "denied; readonly users are refused there",
    )
