from dataclasses import replace

from streamfrom.proxy.app import member_numbers
from streamfrom.proxy.app.member_numbers import numbers_in_use
from tests.proxy.fake_answers import Silence, rows_of
from tests.proxy.fake_server import FakeServer
from tests.proxy.rigs import config_of


def fleet_of(*servers):
    configs = [config_of(server) for server in servers]
    keyspaces = [
        replace(keyspace, name=f"{keyspace.name}{number}")
        for number, config in enumerate(configs)
        for keyspace in config.keyspaces
    ]
    return replace(configs[0], keyspaces=tuple(keyspaces))


async def test_numbers_on_all_shards_are_in_use(server):
    server.once("streamfrom_members", rows_of(5, 7, column="id_prefix"))
    server.once("streamfrom_members", rows_of(7, 9, column="id_prefix"))
    assert await numbers_in_use(fleet_of(server, server)) == {5, 7, 9}


async def test_a_server_that_is_away_or_has_no_table_is_passed_over(server):
    away = FakeServer()
    server.once("streamfrom_members", rows_of(5, column="id_prefix"))
    assert await numbers_in_use(fleet_of(server, away)) == {5}
    assert away.controlled == []


async def test_a_server_that_does_not_answer_is_not_waited_for(server, monkeypatch):
    monkeypatch.setattr(member_numbers, "TIMEOUT_S", 0.01)
    server.once("streamfrom_members", Silence())
    assert await numbers_in_use(fleet_of(server)) == frozenset()
