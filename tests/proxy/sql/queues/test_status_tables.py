"""What a server is asked in place of a statement on the schema `streamfrom`; servers answer in test_admin.py of the integration tests."""

import ast

from tests.cases import cases, in_turn


@in_turn
@cases(sql=str, code=ast.literal_eval)
async def test_what_there_is_not_is_refused(client, sql, code):
    assert (await client.query(sql)).code == code


async def test_in_the_schema_names_need_no_qualifier(server, client):
    await client.query("USE streamfrom")
    assert (await client.query("SELECT * FROM Queues")).error is None
    assert server.heard[-1].endswith(" SELECT * FROM Queues")
    assert (await client.query("SELECT * FROM t")).code == 1146


async def test_a_server_that_works_evaluates(server, other_server, proxy):
    near, far = await proxy.client("commerce"), await proxy.client("plain")
    for shard in (("commerce", "-80"), ("plain", "-")):
        proxy.app.shards[shard].trouble = "down"
    for client in (near, far):
        assert (await client.query("SELECT * FROM streamfrom.queues")).error is None
    assert sum("Queues" in text or "queues" in text for text in other_server.heard) == 2
    assert not any("queues" in text for text in server.heard)
    proxy.app.shards["commerce", "80-"].trouble = "down"
    assert (await near.query("SELECT * FROM streamfrom.queues")).error is None
    assert any("queues" in text for text in server.heard), "the first one, where none does"
