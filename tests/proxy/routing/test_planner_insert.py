import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import BadVindexValue
from streamfrom.proxy.routing.routes import OneShard, WriteParts
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.proxy.keyspaces import HIGH, QUARTERS, SHARDED
from tests.proxy.routing.test_planner import route


ids = st.integers(0, 2 * HIGH - 1)


@given(st.lists(ids, min_size=1, max_size=30))
def test_an_insert_over_shards_keeps_every_row_once_and_on_its_own_shard(numbers):
    rows = [f"('row {index}', {number})" for index, number in enumerate(numbers)]
    sql = f"INSERT /* kept */ INTO t (a, id) VALUES {', '.join(rows)} ON DUPLICATE KEY UPDATE a = 1"
    found = route(sql)
    if isinstance(found, OneShard):
        assert len({SHARDED.shard_of(n.to_bytes(8, "big")) for n in numbers}) == 1
        return
    assert isinstance(found, WriteParts)
    kept: list[str] = []
    for shard, text in found.parts:
        assert text is not None
        head, _, tail = text.decode().partition(" VALUES ")
        assert head == "INSERT /* kept */ INTO t (a, id)"
        body, _, _ = tail.partition(" ON DUPLICATE")
        assert text.endswith(b" ON DUPLICATE KEY UPDATE a = 1")
        mine = [row for row in rows if row in body]
        assert ",".join(mine) == body
        for row in mine:
            number = int(row.rstrip(")").rpartition(" ")[2])
            assert SHARDED.shard_of(number.to_bytes(8, "big")) is shard
        kept += mine
    assert sorted(kept) == sorted(rows)


@pytest.mark.parametrize(
    ("value", "code"), [("NULL", 1048), ("'five'", 1366), ("1.5", 1366), ("-1", 1366)]
)
def test_a_value_that_no_shard_owns_is_an_error_as_on_a_server(value, code):
    for sql in (f"INSERT INTO t (id) VALUES ({value})", f"INSERT INTO t SET id = {value}"):
        with pytest.raises(BadVindexValue) as refused:
            route(sql)
        assert refused.value.wire_code()[0] == code


@pytest.mark.parametrize(
    "rows", [f"({HIGH})", f"(1), ({HIGH})", f"(1), ({HIGH // 2}), ({HIGH})"]
)
def test_a_row_outside_of_a_narrowed_target_is_refused_and_not_dropped(rows):
    with pytest.raises(Unsupported, match="a row of shard '80-c0', which is not in the target"):
        route(
            f"INSERT INTO t (id) VALUES {rows}", keyspace=QUARTERS, shards=QUARTERS.shards[:2]
        )


@pytest.mark.parametrize("value", ["VALUES(id)", "id", "LAST_INSERT_ID(id)", "t.id"])
def test_an_upsert_may_assign_the_vindex_column_what_it_has(value):
    sql = f"INSERT INTO t (id, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE id = {value}, a = 3"
    assert isinstance(route(sql), OneShard)


@pytest.mark.parametrize("where", ["id = 1", "id = 1 AND a = 2", "id IN (1, 1)"])
def test_an_update_may_assign_the_vindex_column_the_value_that_it_asks_for(where):
    assert isinstance(route(f"UPDATE t SET id = 1, a = 3 WHERE {where}"), OneShard)


@pytest.mark.parametrize("where", ["id = 2", "id IN (1, 2)", "a = 1", "id = 1 OR a = 1"])
def test_an_update_that_may_move_a_row_is_refused(where):
    with pytest.raises(Unsupported, match="changing the vindex column 'id'"):
        route(f"UPDATE t SET id = 1, a = 3 WHERE {where}")
