from streamfrom.engine.errors import TableLoadError
from streamfrom.engine.messaging.shell.definition_reader import KeyspaceTables
from streamfrom.engine.sharding.keyspace import Keyspace, Shard


def test_a_table_is_found_by_its_name_in_another_case_unless_that_is_another_ones():
    tables = KeyspaceTables(Keyspace("ks", (Shard.named("0"),)))
    tables.by_name = {name: TableLoadError(name, "no id") for name in ("Msg", "msg", "Other")}
    tables.spelled = {name.lower(): name for name in tables.by_name}
    assert [tables.name(name) for name in ("Msg", "msg", "OTHER", "none")] == [
        "Msg", "msg", "Other", "none",
    ]  # fmt: skip
    assert tables.runner("OTHER") is None
    assert tables.shards == ("0",)
