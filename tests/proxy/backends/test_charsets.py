import ast

import pytest

from streamfrom.proxy.backends.charsets import Charsets
from streamfrom.proxy.backends.session_variables import names
from streamfrom.proxy.errors import NoClientCharset
from tests.cases import cases
from tests.proxy.fake_answers import rows_of
from tests.proxy.fake_server import MARIADB, FakeServer
from tests.proxy.rigs import running_shard


async def learnt(server):
    charsets = Charsets()
    async with running_shard(server) as shard:
        await charsets.learn(shard.control)
    return charsets


async def test_a_collation_that_the_servers_have_is_passed_on_by_name(server):
    charsets = await learnt(server)
    assert charsets.settings(8) is names("latin1", "latin1_swedish_ci")
    assert charsets.settings(255) is names("utf8mb4", "utf8mb4_0900_ai_ci")
    assert charsets.settings(28) is names("gbk", "gbk_chinese_ci")
    assert charsets.settings(58) is names("cp1257", "cp1257_bin"), "which servers alone know"


async def test_one_they_lack_becomes_the_one_they_all_have(calm):
    async with FakeServer(MARIADB) as server:
        charsets = await learnt(server)
    assert charsets.settings(255) is names("utf8mb4", "utf8mb4_general_ci")
    assert charsets.settings(8) is names("latin1", "latin1_swedish_ci")


@pytest.mark.parametrize(
    ("collation_id", "charset"),
    [(35, "ucs2"), (87, "gbk"), (13, "sjis"), (1119, "cp932"), (248, "gb18030")],
)
async def test_what_no_statement_is_written_in_or_they_lack_is_not_taken_for_one_of_utf8(
    server, collation_id, charset
):
    with pytest.raises(NoClientCharset) as refused:
        (await learnt(server)).settings(collation_id)
    assert str(refused.value).startswith(
        f"Variable 'character_set_client' can't be set to the value of '{charset}"
    )


@cases(mode=str, is_set=ast.literal_eval)
async def test_a_server_that_reads_texts_in_its_own_way_has_its_mode_set_for_everybody(
    server, mode, is_set
):
    server.on("@@global.sql_mode", rows_of(mode))
    charsets = await learnt(server)
    assert charsets.settings(45).sql_mode == (mode if is_set else "")


@cases(collation=str, greeted=ast.literal_eval)
async def test_clients_are_greeted_with_the_servers_own_collation_where_it_can_be_spoken(
    server, collation, greeted
):
    server.collation = collation
    assert (await learnt(server)).greeted == greeted
