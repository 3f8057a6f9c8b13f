import pytest

from streamfrom.proxy.config.file import Role, Secret, User
from tests.cases import cases
from tests.proxy.fake_answers import rows_of
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


@cases(sql=str.encode)
async def test_what_needs_nothing_put_in_goes_as_it_was_written(server, gbk, sql):
    server.once("SHOW TABLES", rows_of(1))
    assert (await gbk.query(sql)).error is None
    assert sql.decode("utf-8", "surrogateescape") in server.heard


@cases(sql=str.encode, sent=str.encode)
async def test_what_is_put_in_or_cut_out_leaves_characters_whole(server, gbk, sql, sent):
    assert (await gbk.query(sql)).error is None
    assert sent.decode("utf-8", "surrogateescape") in server.heard


async def test_an_ack_is_completed(server, gbk):
    sql = (
        b"UPDATE msg SET time_acked = 1800000000000000005, message = '" + XU + b"' WHERE id = 1"
    )
    assert (await gbk.query(sql)).error is None
    (heard,) = [each for each in server.heard if each.startswith("UPDATE msg")]
    assert "time_acked IS NULL" in heard
    assert f"message = '{XU.decode('utf-8', 'surrogateescape')}'" in heard


async def test_a_message_table_is_known_by_its_name(server, other_server):
    add_message_table(server, "\u6a31")
    async with running_proxy(server, other_server) as proxy:
        client = await proxy.client("plain")
        for charset in ("gbk", "big5", "sjis", "ujis", "utf8mb4"):
            await client.query(f"SET NAMES {charset}")
            codec = {"sjis": "shift_jis", "ujis": "euc_jp", "utf8mb4": "utf-8"}.get(
                charset, charset
            )
            word = "\u6a31".encode(codec, "ignore")
            if word:
                await client.query(
                    b"UPDATE `%s` SET time_acked = 1800000000000000005 WHERE id = 1" % word
                )
                assert "time_acked IS NULL" in server.heard[-1], charset


async def test_nothing_beyond_ascii_is_put_into_such_a_text(server, other_server):
    user = User("\u6a31", Secret(""), None, Role.USER)
    async with running_proxy(server, other_server, users=(user,)) as proxy:
        client = await proxy.client("plain", user="\u6a31")
        await client.query("SET NAMES gbk")
        error = (await client.query(b"SELECT CURRENT_USER, '" + XU + b"'")).error
        assert error is not None
        assert error.code == 1235
        assert (await client.query(b"SELECT '" + XU + b"'")).error is None


async def test_several_shards_read_ascii_only(gbk):
    await gbk.query("USE commerce")
    error = (await gbk.query(b"SELECT * FROM t WHERE a = '" + XU + b"'")).error
    assert error.code == 1235
    assert (await gbk.query(b"SELECT * FROM t WHERE a = 'x'")).error is None
