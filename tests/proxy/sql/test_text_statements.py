"""What no server is asked of a text statement; tests/integration/sessions/test_text_statements.py has them on servers."""

from streamfrom.proxy.sql import text_statements
from tests.proxy.rigs import said


async def test_what_no_server_prepares_is_kept_all_the_same(server, messages):
    client = await messages.client("commerce")
    for sql in ("PREPARE p FROM 'STREAM id FROM msg LIMIT 1 WAIT 0'", "EXECUTE p"):
        assert (await client.query(sql)).error is None
    assert not any("STREAM" in text for text in said(server))


async def test_there_is_a_bound_on_names(client, monkeypatch):
    monkeypatch.setattr(text_statements, "STATEMENTS_MAX", 2)
    for name in ("a", "b", "b"):
        assert (await client.query(f"PREPARE {name} FROM 'SELECT 1'")).error is None
    assert (await client.query("PREPARE c FROM 'SELECT 1'")).code == 1461


async def test_what_is_kept_counts_until_it_is_gone(client, proxy):
    used_bytes = proxy.app.services.memory_of("root").used_bytes
    for sql in (
        "PREPARE a FROM 'SELECT 1'",
        "PREPARE a FROM 'SELECT 10'",
        "PREPARE b FROM 'DO 1'",
    ):
        assert (await client.query(sql)).error is None
    assert proxy.app.services.memory_of("root").used_bytes == used_bytes + len("SELECT 10DO 1")
    assert (await client.query("DEALLOCATE PREPARE a")).error is None
    assert (await client.query("PREPARE b FROM ''")).code == 1065
    assert proxy.app.services.memory_of("root").used_bytes == used_bytes
