from streamfrom.engine.messaging.memory_store import loaded, raw_table
from streamfrom.engine.messaging.sql_names import columns_query


TABLE = loaded(raw_table("msg"))


def test_the_columns_of_a_stream_are_asked_for_without_rows():
    sql = columns_query(TABLE, ("id", "odd`name"))
    assert sql == b"SELECT `id`, `odd``name` FROM `msg` WHERE 1 = 0"
