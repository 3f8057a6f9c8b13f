import pytest

from tests.proxy.fake_answers import rows_of
from tests.proxy.house import add_message_table, running_proxy


# A character of gbk and big5 whose second half is a backslash.
XU = b"\xb3\\"


@pytest.fixture
async def gbk(server, other_server):
    add_message_table(server)
    async with running_proxy(server, other_server) as house:
        client = await house.client("plain")
        assert (await client.query("SET NAMES gbk")).error is None
        yield client


@pytest.mark.parametrize(
    "sql",
    [
        b"SELECT '" + XU + b"', \"it\\'s " + XU + b'" FROM t WHERE a = 1',
        b"INSERT INTO t (`" + XU + b"`) VALUES ('" + XU + b"'), ('\\\\')",
        b"UPDATE t SET a = '" + XU + b"'",
        # A backslash takes one byte, and what is behind that is a backslash again.
        b"SELECT '\\" + XU + b"', WHERE a = 1'",
        b"DELETE FROM t WHERE a LIKE '%" + XU + b"%'",
        b"SET @a = '" + XU + b"', @b = 1",
        b"CREATE TABLE other (a INT COMMENT '" + XU + b"')",
        b"SHOW TABLES LIKE '" + XU + b"'",
    ],
)
async def test_what_needs_nothing_put_in_goes_as_it_was_written(server, gbk, sql):
    server.once("SHOW TABLES", rows_of(1))
    assert (await gbk.query(sql)).error is None
    assert sql.decode("utf-8", "surrogateescape") in server.heard


@pytest.mark.parametrize(
    "sql",
    [
        b"SELECT CONNECTION_ID(), '" + XU + b"'",
        b"SELECT FOUND_ROWS(), '" + XU + b"'",
        b"SELECT GET_LOCK('" + XU + b"', 1)",
        b"SELECT 1; SELECT '" + XU + b"'",
        b"SELECT '" + XU + b"' FROM commerce.t",
        b"SELECT '" + XU + b"' FROM `" + XU + b"`",
        b"SELECT @`" + XU + b"`",
        b"SET @@sql_mode = '', @a = '" + XU + b"'",
        b"INSERT INTO msg (id, message) VALUES (1, '" + XU + b"')",
        b"SELECT 1 FROM information_schema.tables WHERE table_schema = 'plain' AND '"
        + XU
        + b"'",
        b"USE `" + XU + b"`",
        b"CREATE DATABASE `" + XU + b"`",
        b"SELECT '\xb3",
        b"PREPARE s FROM 'SELECT \"" + XU + b"\"'",
    ],
)
async def test_everything_else_is_refused_and_not_sent(server, gbk, sql):
    error = (await gbk.query(sql)).error
    assert error.code == 1235
    assert b"in a statement in gbk" in error.message
    assert sql.decode("utf-8", "surrogateescape") not in server.heard


async def test_several_shards_read_ascii_only(gbk):
    await gbk.query("USE commerce")
    error = (await gbk.query(b"SELECT * FROM t WHERE a = '" + XU + b"'")).error
    assert error.code == 1235
    assert (await gbk.query(b"SELECT * FROM t WHERE a = 'x'")).error is None
