"""VEXPLAIN QUERIES through a proxy whose servers are fakes; the real ones are asked in test_vexplain.py of the integration tests."""

import ast

from tests.cases import cases
from tests.proxy.fake_answers import Error
from tests.proxy.rigs import said


def listed(result):
    assert result.error is None, result.error
    return [tuple((value or b"").decode() for value in row) for row in result.rows]


async def test_the_error_of_a_shard_is_the_answer(server, client):
    server.on("FROM t", Error(1146, "Table 'shop.t' doesn't exist", "42S02"))
    result = await client.query("VEXPLAIN QUERIES SELECT id FROM t WHERE id = 1")
    assert (result.code, result.message) == (1146, "Table 'shop.t' doesn't exist")
    assert listed(await client.query("VEXPLAIN QUERIES SELECT 1"))[0][3] == "SELECT 1"


@cases(sql=str, code=ast.literal_eval, words=str)
async def test_what_cannot_be_listed_is_refused_and_not_run(server, client, sql, code, words):
    before = said(server)
    result = await client.query(sql)
    assert result.code == code
    assert words in result.message
    assert said(server) == before
