import pytest

from streamfrom.proxy.wire.constants import FieldType
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.proxy.fake_answers import Error, Rows
from tests.proxy.rigs import SessionRig, running_shard


TYPES = (FieldType.LONGLONG, *[FieldType.VAR_STRING] * 3)
COLUMNS = ("v", "charset", "collation", "hex")
NAMES = "user_variables_by_thread"
UNSET = Rows(COLUMNS, ((None, b"binary", b"binary", None),), types=(FieldType.VAR_STRING,) * 4)


def number(value):
    return Rows(COLUMNS, ((b"%d" % value, b"binary", b"binary", None),), types=TYPES)


@pytest.fixture
async def shards(server, other_server):
    server.on(NAMES, Rows(("VARIABLE_NAME",), ((b"a",),)))
    async with (
        running_shard(server, keyspace="one") as here,
        running_shard(other_server, keyspace="two") as there,
    ):
        yield here, there


@pytest.fixture
async def session(shards):
    return SessionRig(*shards)


async def test_who_may_not_read_their_names_is_told_so(server, shards, session):
    server.on(NAMES, Error(1142, "SELECT command denied", "42000"))
    server.on("SELECT @`a`", UNSET)
    await session.run("SET @a = NULL")
    await session.run("CALL p()")
    with pytest.raises(Unsupported, match=r"does not list them.*command denied"):
        await session.run("SELECT 1", shard=1)
    await session.leave()


async def test_a_value_that_does_not_arrive_is_refused(server, other_server, shards, session):
    server.on("SELECT @`a`", number(5))
    other_server.on("SELECT @`a`", number(4))
    await session.run("SET @a = 5")
    with pytest.raises(Unsupported, match="@a in another keyspace or shard: it would not be"):
        await session.run("SELECT 1", shard=1)
    with pytest.raises(Unsupported):
        await session.run("SELECT 1", shard=1)
    await session.run("SELECT @a")
    await session.leave()
    assert [shard.pool.lent for shard in shards] == [0, 0]


async def test_a_server_that_does_not_answer_the_question_is_an_error(server, shards, session):
    server.on("SELECT @`a`", Error(1399, "XAER_RMFAIL", "XAE07"))
    await session.run("SET @a = 5")
    with pytest.raises(Unsupported, match="XAER_RMFAIL"):
        await session.run("SELECT 1", shard=1)
    await session.leave()
