"""What answers a statement, and that a description has the columns of the answer."""

import ast
import json

from streamfrom.proxy.sql.own_answers import explanation
from tests.cases import cases, in_turn
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
