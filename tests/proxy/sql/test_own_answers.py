"""What answers a statement, and that a description has the columns of the answer."""

import pytest


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SHOW DATABASES", [b"commerce", b"information_schema", b"plain"]),
        ("SHOW KEYSPACES", [b"commerce", b"plain"]),
        ("SHOW VITESS_SHARDS", [b"commerce/-80", b"commerce/80-", b"plain/-"]),
        ("SHOW VITESS_TARGET", [b"commerce"]),
        ("SHOW QUEUES", []),
        ("SHOW VSCHEMA VINDEXES ON pin", []),
        ("SELECT id, shard FROM md5 WHERE id = NULL", []),
        ("SELECT CONNECTION_ID()", None),
        ("SHOW PROCESSLIST", None),
        ("SHOW VITESS_TABLETS", None),
    ],
)
async def test_a_description_has_the_columns_of_the_answer(client, sql, rows):
    told = await client.query(sql)
    assert told.error is None
    assert rows is None or told.values == rows
    statement, _, columns = await client.prepare(sql)
    described = client.definitions
    assert columns == told.columns
    assert len((await client.execute(statement)).rows) == len(told.rows)
    assert client.definitions == described
