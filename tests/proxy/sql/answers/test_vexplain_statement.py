import json

import pytest

from streamfrom.engine.errors import TableNotFound
from streamfrom.proxy.sql.answers.vexplain_statement import explanation
from streamfrom.sqlparse_ext.errors import SqlError, Unsupported
from tests.proxy.sql.test_insert_columns import InsertColumnsRig


async def plan(sql, use="commerce"):
    session = InsertColumnsRig(use)
    asked = session.compiler.target.parse(sql.encode())
    (column,), ((text,),) = await explanation(session.context, session.insert_columns, asked)
    assert column.name == "JSON"
    assert text is not None
    return json.loads(text)


async def test_a_qualifier_names_the_keyspace_and_the_shards():
    found = await plan("EXPLAIN FORMAT=VTEXPLAIN SELECT * FROM `commerce:80-`.t", use="plain")
    assert found["TargetDestination"] == "Shard(80-)"


async def test_a_stream_is_planned_over_its_target():
    found = await plan("VEXPLAIN PLAN STREAM * FROM msg", use="commerce:80-")
    assert (found["OperatorType"], found["Shards"]) == ("MStream", ["80-"])


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("VEXPLAIN PLAN", SqlError),
        ("VEXPLAIN TRACE SELECT 1", Unsupported),
        ("VEXPLAIN PLAN SELECT * FROM unknown", Unsupported),
        ("VEXPLAIN PLAN STREAM * FROM t", TableNotFound),
    ],
)
async def test_what_would_not_run_has_no_plan(sql, error):
    with pytest.raises(error):
        await plan(sql)
