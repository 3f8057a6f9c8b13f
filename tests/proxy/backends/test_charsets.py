import ast

import pytest

from streamfrom.proxy.backends.charsets import Charsets
from streamfrom.proxy.backends.session_variables import names
from streamfrom.proxy.errors import NoClientCharset
from tests.cases import cases
from tests.proxy.fake_answers import rows_of
from tests.proxy.fake_server import MARIADB, FakeServer
from tests.proxy.rigs import running_shard


def utf8():
    """Return what everybody gets whom no server knows. Settings are remembered for a while only."""
    return names("utf8mb4", "utf8mb4_general_ci")


@pytest.mark.parametrize("collation_id", [8, 45, 255, 4711])
def test_before_a_server_was_asked_everybody_gets_what_all_servers_know(collation_id):
    assert Charsets().settings(collation_id) is utf8()


async def test_a_collation_that_the_servers_have_is_passed_on_by_name(server):
    charsets = Charsets()
    async with running_shard(server) as shard:
        await charsets.learn(shard.control)
    assert charsets.settings(8) is names("latin1", "latin1_swedish_ci")
    assert charsets.settings(255) is names("utf8mb4", "utf8mb4_0900_ai_ci")
    assert charsets.settings(28) is names("gbk", "gbk_chinese_ci")


async def test_a_number_that_only_the_servers_know_is_theirs_to_read(server):
    charsets = Charsets()
    async with running_shard(server) as shard:
        await charsets.learn(shard.control)
    assert charsets.settings(58) is names("cp1257", "cp1257_bin")
    with pytest.raises(NoClientCharset) as refused:
        charsets.settings(35)
    assert str(refused.value) == (
        "Variable 'character_set_client' can't be set to the value of 'ucs2'"
    )


async def test_one_they_lack_becomes_the_one_they_all_have(calm):
    charsets = Charsets()
    async with FakeServer(MARIADB) as server, running_shard(server) as shard:
        await charsets.learn(shard.control)
    assert charsets.settings(255) is utf8()
    assert charsets.settings(8) is names("latin1", "latin1_swedish_ci")


@pytest.mark.parametrize(
    ("collation_id", "charset"), [(87, "gbk"), (13, "sjis"), (1119, "cp932"), (248, "gb18030")]
)
async def test_who_escapes_for_one_that_they_lack_is_not_taken_for_one_of_utf8(
    server, collation_id, charset
):
    charsets = Charsets()
    async with running_shard(server) as shard:
        await charsets.learn(shard.control)
    with pytest.raises(NoClientCharset) as refused:
        charsets.settings(collation_id)
    assert charset in str(refused.value)


@cases(mode=str, is_set=ast.literal_eval)
async def test_a_server_that_reads_texts_in_its_own_way_has_its_mode_set_for_everybody(
    server, mode, is_set
):
    server.on("@@global.sql_mode", rows_of(mode))
    charsets = Charsets()
    async with running_shard(server) as shard:
        await charsets.learn(shard.control)
    assert charsets.settings(45).sql_mode == (mode if is_set else "")


@cases(collation=str, greeted=ast.literal_eval)
async def test_clients_are_greeted_with_the_servers_own_collation_where_it_can_be_spoken(
    server, collation, greeted
):
    charsets = Charsets()
    assert charsets.greeted == 45
    server.collation = collation
    async with running_shard(server) as shard:
        await charsets.learn(shard.control)
    assert charsets.greeted == greeted
