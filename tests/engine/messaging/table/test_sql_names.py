from streamfrom.engine.messaging.table.sql_names import columns_query
from tests.sim.memory_store import loaded, raw_table


TABLE = loaded(raw_table("msg"))


def test_the_columns_of_a_stream_are_asked_for_without_rows():
    sql = columns_query(TABLE, ("id", "odd`name"))
    assert sql == b"SELECT `id`, `odd``name` FROM `msg` WHERE 1 = 0"
