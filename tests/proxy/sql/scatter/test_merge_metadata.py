"""What a shard is asked before a SELECT is merged."""

from tests.proxy.fake_answers import Error


async def test_the_servers_own_words_about_a_wrong_statement_reach_the_client(server, client):
    server.on("FROM t", Error(1054, "Unknown column 'nope'"))
    assert (await client.query("SELECT nope FROM t ORDER BY 1")).code == 1054
