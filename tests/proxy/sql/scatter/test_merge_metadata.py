"""What a shard is asked before a SELECT is merged."""

from tests.proxy.fake_answers import Error, Rows


async def test_the_servers_own_words_about_a_wrong_statement_reach_the_client(server, client):
    server.on("FROM t", Error(1054, "Unknown column 'nope'"))
    assert (await client.query("SELECT nope FROM t ORDER BY 1")).code == 1054


async def test_strings_are_sorted_by_the_weight_that_their_collation_gives_them(
    server, other_server, client
):
    server.on("FROM t", Rows(("s",)))
    server.on("COLLATION", Rows(("c", "p"), ((b"utf8mb4_general_ci", b"0020"),)))
    for each, *words in ((server, b"0041", b"A"), (other_server, b"00410020", b"a ")):
        each.on("HEX(WEIGHT_STRING(s)) AS", Rows(("w", "s"), (tuple(words),)))
    assert (await client.query("SELECT s FROM t ORDER BY s")).values == [b"A", b"a "]
    server.on("COLLATION", Error(1064, "no such function"))
    server.on("SELECT * FROM t", Error(1142, "denied"))
    assert (await client.query("SELECT s FROM t ORDER BY s")).error is not None
