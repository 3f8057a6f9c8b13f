"""What a server is asked in place of a statement on the schema `streamfrom`; servers answer in test_admin.py of the integration tests."""

import ast
import io

from streamfrom.proxy.commands.top import parse_address, watch
from streamfrom.proxy.sql.queues.status_tables import columns_alone
from tests.cases import cases, in_turn
from tests.sqlparse_ext.facts import statement


@in_turn
@cases(sql=str, code=ast.literal_eval)
async def test_what_there_is_not_is_refused(client, sql, code):
    assert (await client.query(sql)).code == code


async def test_in_the_schema_names_need_no_qualifier(server, client):
    await client.query("USE streamfrom")
    assert (await client.query("SELECT * FROM Queues LIMIT 1")).error is None
    assert server.heard[-1].endswith(" SELECT * FROM Queues LIMIT 1")
    assert (await client.query("SELECT * FROM t")).code == 1146


async def test_a_server_that_works_evaluates(server, other_server, proxy):
    near, far = await proxy.client("commerce"), await proxy.client("plain")
    for shard in (("commerce", "-80"), ("plain", "-")):
        proxy.app.shards[shard].trouble = "down"
    for client in (near, far):
        assert (await client.query("SELECT 1 FROM streamfrom.queues")).error is None
    assert sum("Queues" in text or "queues" in text for text in other_server.heard) == 2
    assert not any("queues" in text for text in server.heard)
    proxy.app.shards["commerce", "80-"].trouble = "down"
    assert (await near.query("SELECT 1 FROM streamfrom.queues")).error is None
    assert any("queues" in text for text in server.heard), "the first one, where none does"


@in_turn
@cases(sql=str, columns=ast.literal_eval)
async def test_columns_alone_need_no_server(sql, columns):
    assert columns_alone(statement(sql).shape.template) == columns


async def test_while_no_server_answers_its_reason_is_shown(server, other_server, proxy):
    client = await proxy.client("commerce")
    server.stop()
    other_server.stop()
    for shard in proxy.app.shards.values():
        await shard.probe()
    asked = await client.query("SELECT Shard, is_up, last_error FROM streamfrom.shards")
    assert [row[:2] for row in asked.rows] == [(b"-80", b"0"), (b"80-", b"0"), (b"-", b"0")]
    assert all(b"mysql://root@127.0.0.1" in (row[2] or b"") for row in asked.rows)
    assert (await client.query("SHOW QUEUE STATUS LIKE 'x%'")).rows == []
    drawn = io.StringIO()
    await watch(parse_address(f"mysql://root@127.0.0.1:{proxy.port}", {}), None, drawn)
    assert drawn.getvalue() == "no message tables\n"
