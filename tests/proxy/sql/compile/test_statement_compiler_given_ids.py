from types import SimpleNamespace

import pytest

from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.proxy.sql.compile.statement_compiler import GivenIds
from tests.proxy.fake_client import MODERN


@pytest.mark.parametrize(
    ("may_update", "affected", "servers", "rows", "told", "last"),
    [
        (False, 2, 0, None, 100, 100),
        (False, 1, 0, 101, 101, 101),
        (False, 0, 0, None, 0, 7),
        (True, 2, 55, None, 55, 7),
        (True, 0, 55, None, 0, 7),
        (True, 3, 55, 101, 101, 101),
    ],
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
