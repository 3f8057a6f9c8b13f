"""How a process knows itself; fleets of real proxies are in tests/integration/faults."""

import asyncio
from dataclasses import replace

import pytest

from streamfrom.engine.messaging.table.message_ids import MEMBERS_MAX
from streamfrom.proxy.app import membership as member_numbers
from streamfrom.proxy.app.membership import (
    MemberNumber,
    Membership,
    member_of_config,
    take_number,
)
from streamfrom.proxy.config.file import load
from streamfrom.proxy.config.toml_values import ConfigError
from tests.proxy.fake_answers import Error, Rows, Silence, rows_of
from tests.proxy.fake_server import FakeServer
from tests.proxy.rigs import config_of


FIVE = MemberNumber("a" * 16, 5)


def config(folder, more=""):
    path = folder / "proxy.toml"
    path.write_text(
        "[keyspaces.ks]\n[[keyspaces.ks.shards]]\nname = '-'\n"
        f"primary = 'mysql://root:secret@127.0.0.1:3306/db'\n{more}"
    )
    return load(path, {})


def test_the_fleet_is_the_configurations_and_its_hash_tells_shards_apart(tmp_path):
    one = config(tmp_path, "[fleet]\nname = 'shop'\n")
    member = member_of_config(one, FIVE, "h:1", "PEM")
    assert (member.id, member.fleet, member.id_prefix) == ("a" * 16, "shop", 5)
    shard = replace(one.keyspaces[0].shards[0], name="other")
    other = replace(one, keyspaces=(replace(one.keyspaces[0], shards=(shard,)),))
    assert member_of_config(other, FIVE, "h:1", "PEM").configuration != member.configuration
    assert "secret" not in str(member)


def membership(folder, text):
    async def main():
        made = Membership(config(folder, text), {}, FIVE)
        if made.port is not None:
            made.port.close()
        return made.member.address, made.port is not None

    return asyncio.run(main())


def test_it_listens_where_it_reaches_its_shards_unless_the_configuration_says_otherwise(
    tmp_path,
):
    address, has_port = membership(tmp_path, "[fleet]\nname = 'shop'\n")
    assert has_port
    host, _, port = address.rpartition(":")
    assert (host, int(port) > 0) == ("127.0.0.1", True)
    text = "[fleet]\nadvertise = 'nat.example:7'\n"
    assert membership(tmp_path, text) == ("nat.example:7", True)
    assert membership(tmp_path, "[fleet]\nlisten = ''\n") == ("", False)
    with pytest.raises(OSError, match=r"fleet.listen: cannot listen on 192.0.2.1 port 7"):
        membership(tmp_path, "[fleet]\nlisten = '192.0.2.1:7'\n")


LOCKS = "SELECT IS_USED_LOCK('streamfrom."
NUMBERS = "SELECT id_prefix, member FROM streamfrom.members"
INSERT = "INSERT INTO streamfrom.members"
ALL = range(1, MEMBERS_MAX + 1)
DENIED = Error(1142, "INSERT command denied")


def fleet_of(*servers):
    configs = [config_of(server) for server in servers]
    keyspaces = [
        replace(keyspace, name=f"{keyspace.name}{number}")
        for number, config in enumerate(configs)
        for keyspace in config.keyspaces
    ]
    return replace(configs[0], keyspaces=tuple(keyspaces))


def take(*servers, stop=None):
    return take_number(fleet_of(*servers), stop or asyncio.Event())


def taken(*numbers):
    """Return the answer of a directory with a row for each of these numbers."""
    return Rows(
        ("id_prefix", "member"), tuple((b"%d" % each, b"member%d" % each) for each in numbers)
    )


def locks(*held):
    """Return the answer of a server on which connection 7 holds the locks of these numbers."""
    numbers = range(1, MEMBERS_MAX + 1)
    return Rows(
        tuple(map(str, numbers)), (tuple(b"7" if each in held else None for each in numbers),)
    )


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A server that answers is waited for, however busy the machine is."""
    monkeypatch.setattr(member_numbers, "TIMEOUT_S", 60)


async def test_who_meets_another_that_wants_the_same_number_takes_the_next_one(server):
    server.once(NUMBERS, taken())
    server.once(INSERT, Error(1062, "Duplicate entry"))
    server.once("SELECT member FROM streamfrom.members", rows_of("bbbb", column="member"))
    assert (await take(server)).number == 2
    assert any(text.startswith("DELETE FROM streamfrom.members") for text in server.controlled)


async def test_a_server_that_is_away_and_a_client_with_all_locks_keep_nobody_from_starting(
    server,
):
    away = FakeServer()
    server.on(NUMBERS, taken(1))
    assert (await take(server, away)).number == 2
    assert away.controlled == []
    server.on(LOCKS, locks(*ALL))
    assert (await take(server)).number == 2
    server.on(NUMBERS, taken(*ALL))
    with pytest.raises(ConfigError, match=f"all {MEMBERS_MAX} numbers of members are taken"):
        await take(server)


async def test_a_connected_member_keeps_its_number_where_the_directory_is_dropped(server):
    server.on(LOCKS, locks(1, 3))
    server.on(NUMBERS, taken())
    assert (await take(server)).number == 2
    server.on("streamfrom.members", DENIED)
    assert (await take(server)).number not in {1, 3}


async def test_where_every_number_is_taken_those_of_members_that_stay_away_are_freed(
    server, monkeypatch
):
    """64 members that each ended before they could dispatch for a minute left none to start with."""
    monkeypatch.setattr(member_numbers, "LOOK_S", 0)
    monkeypatch.setattr(member_numbers, "LOOKS", 1)
    others = set(ALL) - {5}
    server.once(NUMBERS, taken(*ALL), taken(*ALL), taken(*others))
    # At the start 5 and 9 are away, and 9 comes back.
    server.once(LOCKS, locks(*others - {9}), locks(*others), locks(*others))
    assert (await take(server)).number == 5
    (delete,) = [text for text in server.controlled if text.startswith("DELETE")]
    assert "'member5'" in delete
    assert "'member9'" not in delete


async def test_a_stop_ends_the_wait_for_members_that_stay_away(server, monkeypatch):
    monkeypatch.setattr(member_numbers, "LOOK_S", 0)
    server.on(NUMBERS, taken(*ALL))
    stop = asyncio.Event()
    stop.set()
    await take(server, stop=stop)
    assert not [text for text in server.controlled if text.startswith("DELETE")]


async def test_a_server_that_does_not_answer_is_not_waited_for(server, monkeypatch):
    monkeypatch.setattr(member_numbers, "TIMEOUT_S", 0.01)
    server.once(NUMBERS, Silence())
    assert (await take(server)).number
