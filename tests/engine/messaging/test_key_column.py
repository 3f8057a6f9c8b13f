import pytest

from streamfrom.engine.messaging import key_column
from streamfrom.engine.messaging.table_settings import parse_comment
from tests.engine.messaging.test_table_settings import comment


TYPES = {"id": "bigint", "tenant": "varchar", "body": "json", "weight": "double"}
KEYED = parse_comment(comment("vt_key=Tenant", "vt_key_in_flight=2"))
STRICT = parse_comment(comment("vt_order=strict"))
PLAIN = parse_comment(comment())


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("tenant", None),
        ("TENANT", None),
        ("nobody", "vt_key must be a column of the table, not 'nobody'"),
        ("body", "vt_key must be a column that an index has whole, not body JSON"),
        ("weight", "vt_key must be a column that an index has whole, not weight DOUBLE"),
    ],
)
def test_a_key_is_a_column_that_an_index_finds(key, reason):
    properties = parse_comment(comment(f"vt_key={key}"))
    assert key_column.fault(properties, TYPES) == reason


def test_the_first_layout_has_no_order():
    assert key_column.fault(PLAIN, TYPES, first_layout=True) is None
    for properties in (KEYED, STRICT):
        assert key_column.fault(properties, TYPES) is None
        assert key_column.fault(properties, TYPES, first_layout=True) == (
            "vt_order = strict and vt_key_in_flight need a table with the column priority"
        )


def test_the_index_begins_with_the_key():
    assert key_column.index_definition(PLAIN) is None
    assert key_column.index_definition(KEYED) == (
        "KEY `order_idx` (`tenant`, `time_acked`, `epoch`, `priority`, `time_next`)"
    )
    assert key_column.index_definition(STRICT) == (
        "KEY `order_idx` (`time_acked`, `epoch`, `priority`, `time_next`)"
    )


def test_any_index_will_do_that_begins_so():
    columns = ("time_acked", "epoch", "priority", "time_next")
    indexes = [("PRIMARY", ("id",)), ("mine", ("Tenant", *columns, "id")), ("other", columns)]
    assert key_column.index_of(KEYED, indexes) == "mine"
    assert key_column.index_of(STRICT, indexes) == "other"
    assert key_column.index_of(KEYED, indexes[:1]) is None
    assert key_column.index_of(PLAIN, indexes) is None


def test_what_is_missing_is_told_with_its_cure():
    assert key_column.advice("my`q", KEYED) == (
        "no index on tenant, time_acked, epoch, priority, time_next: each claim reads all messages of a"
        " key; ALTER TABLE `my``q` ADD INDEX order_idx (tenant, time_acked, epoch, priority, time_next)"
    )
