import pytest

from tests.cases import cases
from tests.proxy.rigs import add_message_table, running_proxy


# A character of gbk and big5 whose second half is a backslash.
XU = b"\xb3\\"


@pytest.fixture
async def gbk(server, other_server):
    add_message_table(server)
    async with running_proxy(server, other_server) as proxy:
        client = await proxy.client("plain")
        assert (await client.query("SET NAMES gbk")).error is None
        yield client


@cases(sql=str.encode, sent=str.encode)
async def test_what_is_put_in_or_cut_out_leaves_characters_whole(server, gbk, sql, sent):
    assert (await gbk.query(sql)).error is None
    assert sent.decode("utf-8", "surrogateescape") in server.heard


async def test_several_shards_read_ascii_only(gbk):
    await gbk.query("USE commerce")
    error = (await gbk.query(b"SELECT * FROM t WHERE a = '" + XU + b"'")).error
    assert error.code == 1235
    assert (await gbk.query(b"SELECT * FROM t WHERE a = 'x'")).error is None
