"""INSERT … SELECT whose rows are read first, before fake servers; real ones have it in test_routing.py and test_write_property.py."""

from tests.cases import cases
from tests.proxy.fake_answers import Rows, rows_of
from tests.proxy.rigs import said


async def test_no_rows_are_no_insert(server, other_server, client):
    for each in (server, other_server):
        each.on("SELECT a FROM t", rows_of())
    result = await client.query("INSERT INTO t (id) SELECT a FROM t")
    assert result.ok is not None
    assert (result.ok.affected_rows, result.ok.info[:10]) == (0, b"Records: 0")
    assert len(said(server)) == len(said(other_server)) == 1


async def test_no_rows_are_returned_with_the_columns_that_they_would_have(
    server, other_server, client
):
    for each in (server, other_server):
        each.on("SELECT a, b FROM t", Rows(("a", "b")))
    server.on("RETURNING", Rows(("told", "twice")))
    result = await client.query(
        "INSERT INTO t (id, c) SELECT a, b FROM t RETURNING told, twice"
    )
    assert (result.columns, result.rows, result.error) == (2, [], None)
    assert said(server)[-1] == (
        "INSERT INTO t (id, c) SELECT NULL, NULL FROM DUAL WHERE FALSE RETURNING told, twice"
    )
    assert len(said(other_server)) == 1


@cases(sql=str, words=str)
async def test_what_cannot_be_exact_is_refused(server, other_server, client, sql, words):
    result = await client.query(sql)
    assert result.code == 1235
    assert words in result.message
    assert not any("INSERT" in each for each in said(server) + said(other_server))


async def test_texts_in_other_character_sets_are_taken_where_they_stay_what_they_are(
    server, client
):
    server.on("SELECT a FROM t", rows_of(1))
    insert = "INSERT INTO t (id) SELECT a FROM t WHERE id = 5"
    assert (await client.query("SET NAMES latin1")).error is None
    assert (await client.query(insert)).error is None
    server.on("SELECT a FROM t", rows_of("?"))
    for names in ("SET NAMES latin1", "SET NAMES gbk", "SET character_set_results = NULL"):
        assert (await client.query(names)).error is None
        result = await client.query(insert)
        assert (result.code, "SET NAMES utf8mb4" in result.message) == (1235, True)
