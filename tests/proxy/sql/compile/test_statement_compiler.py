import ast
from types import SimpleNamespace

import pytest

from streamfrom.engine.errors import TableLoadError
from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.proxy.sql.compile.statement_compiler import GivenIds
from tests.cases import cases
from tests.proxy.fake_client import MODERN
from tests.proxy.rigs import add_message_table, running_proxy
from tests.proxy.sql.compilers import compiler


def step(sql):
    made = compiler("plain")
    assert made.target.view is not None
    return made.compile(made.target.view, made.target.parse(sql.encode()))


@cases(sql=str)
def test_what_writes_no_message_is_left_as_it_is(sql):
    found = step(sql)
    assert (found.statement.sql.decode(), found.table, found.effect) == (sql, "", None)


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM broken", "INSERT INTO t SELECT * FROM broken", "DELETE FROM broken"]
)
def test_a_table_that_failed_to_load_says_so_to_everybody_anew(sql):
    errors = []
    for _ in range(2):
        with pytest.raises(TableLoadError, match="vt_ack_wait is missing") as failed:
            step(sql)
        errors.append(failed.value)
    assert errors[0] is not errors[1]


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


@cases(
    may_update=ast.literal_eval,
    affected=ast.literal_eval,
    servers=ast.literal_eval,
    rows=ast.literal_eval,
    told=ast.literal_eval,
    last=ast.literal_eval,
)
async def test_the_insert_id_is_that_of_a_row(may_update, affected, servers, rows, told, last):
    async def rows_uncommitted(sql):
        assert sql == "SELECT MIN(`id`) FROM `db`.`q` WHERE `id` IN (100, 101)"
        return [(rows,)]

    shard = SimpleNamespace(
        database="db", control=SimpleNamespace(rows_uncommitted=rows_uncommitted)
    )
    state = SessionState(int(MODERN), Settings())
    state.last_insert_id = 7
    given = GivenIds("q", "id", (100, 101), 2, may_update, may_update)
    assert await given.told(state, [shard], affected, servers, 7) == told  # type: ignore[list-item]
    assert state.last_insert_id == last
