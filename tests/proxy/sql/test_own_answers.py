"""What answers a statement, and that a description has the columns of the answer."""

import ast
import json

from streamfrom.proxy.sql.own_answers import explanation
from tests.cases import cases, in_turn
from tests.proxy.fake_answers import Error
from tests.proxy.rigs import said
from tests.proxy.sql.scatter.test_insert_selects import InsertColumnsRig


@in_turn
@cases(sql=str, rows=ast.literal_eval)
async def test_a_description_has_the_columns_of_the_answer(client, sql, rows):
    told = await client.query(sql)
    assert told.error is None
    assert rows is None or told.values == rows
    statement, _, columns = await client.prepare(sql)
    described = client.definitions
    assert columns == told.columns
    assert len((await client.execute(statement)).rows) == len(told.rows)
    assert client.definitions == described


# VEXPLAIN before fake servers; the real ones are asked in tests/integration/test_routing.py.
def listed(result):
    assert result.error is None, result.error
    return [tuple((value or b"").decode() for value in row) for row in result.rows]


async def test_the_error_of_a_shard_is_the_answer(server, client):
    server.on("FROM t", Error(1146, "Table 'shop.t' doesn't exist", "42S02"))
    result = await client.query("VEXPLAIN QUERIES SELECT id FROM t WHERE id = 1")
    assert (result.code, result.message) == (1146, "Table 'shop.t' doesn't exist")
    assert listed(await client.query("VEXPLAIN QUERIES SELECT 1"))[0][3] == "SELECT 1"


@in_turn
@cases(sql=str, code=ast.literal_eval, words=str)
async def test_what_cannot_be_listed_is_refused_and_not_run(server, client, sql, code, words):
    result = await client.query(sql)
    assert result.code == code
    assert words in result.message
    # Whether there is a table is asked, which runs nothing.
    assert [text for text in said(server) if not text.startswith("PREPARE ")] == []


async def plan(sql, use="commerce"):
    session = InsertColumnsRig(use)
    asked = session.compiler.target.parse(sql.encode())
    (column,), ((text,),) = await explanation(session.context, asked)
    assert column.name == "JSON"
    assert text is not None
    return json.loads(text)


async def test_a_qualifier_names_the_keyspace_and_the_shards():
    found = await plan("EXPLAIN FORMAT=VTEXPLAIN SELECT * FROM `commerce:80-`.t", use="plain")
    assert found["TargetDestination"] == "Shard(80-)"


async def test_a_stream_is_planned_over_its_target():
    found = await plan("VEXPLAIN PLAN STREAM * FROM msg", use="commerce:80-")
    assert (found["OperatorType"], found["Shards"]) == ("MStream", ["80-"])
