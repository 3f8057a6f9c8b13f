"""What a session reads of system schemas, with the names of keyspaces in it."""

from tests.cases import cases, in_turn
from tests.proxy.fake_answers import Error, Rows


async def test_the_columns_of_a_table_are_asked_for_once(server, proxy):
    server.on("`information_schema`.`tables`", Rows(("Field",), ((b"TABLE_SCHEMA",),)))
    client = await proxy.client("plain")
    sql = "SELECT 1 FROM information_schema.tables WHERE LOWER(table_schema) = 'plain'"
    for _ in range(2):
        assert (await client.query(sql)).error is None
        assert "WHEN 'db' THEN 'plain'" in server.heard[-1]
    assert server.controlled.count("SHOW COLUMNS FROM `information_schema`.`tables`") == 1


@in_turn
@cases(sql=str)
async def test_what_needs_no_other_names_stays_as_it_is(server, proxy, sql):
    server.on("`information_schema`.`nothing`", Error(1109, "Unknown table"))
    client = await proxy.client("plain")
    assert (await client.query(sql)).error is None
    assert server.heard[-1] == sql
