import pytest

from streamfrom.engine.messaging.table import key_column
from streamfrom.engine.messaging.table.table_settings import parse_comment
from tests.cases import cases
from tests.engine.messaging.table.test_table_settings import comment


TYPES = {"id": "bigint", "tenant": "varchar", "body": "json", "weight": "double"}
KEYED = parse_comment(comment("vt_key=Tenant", "vt_max_per_key=2"))
STRICT = parse_comment(comment("vt_order=strict"))
PLAIN = parse_comment(comment())


@cases(key=str, reason=str)
def test_a_key_is_a_column_that_an_index_finds(key, reason):
    properties = parse_comment(comment(f"vt_key={key}"))
    assert key_column.fault(properties, TYPES) == reason


def test_the_first_layout_has_no_order():
    assert key_column.fault(PLAIN, TYPES, first_layout=True) is None
    for properties in (KEYED, STRICT):
        assert key_column.fault(properties, TYPES) is None
        assert key_column.fault(properties, TYPES, first_layout=True) == (
            "vt_order = strict and vt_max_per_key need a table with the column priority"
        )
    fair = parse_comment(comment("vt_key=Tenant", "vt_fair=on"))
    assert key_column.fault(fair, TYPES) is None
    assert key_column.fault(fair, TYPES, first_layout=True) == (
        "vt_fair needs a table with the column priority"
    )


@pytest.mark.parametrize("kind", ["float", "double"])
def test_an_id_that_is_not_equal_to_its_own_text_has_no_order(kind):
    types = {**TYPES, "id": kind}
    assert key_column.fault(PLAIN, types) is None
    for properties in (KEYED, STRICT):
        fault = key_column.fault(properties, types)
        assert fault is not None
        assert fault.startswith("id must not be FLOAT or DOUBLE with vt_order = strict")


ORDERED = "KEY `order_idx` (`tenant`, `time_acked`, `epoch`, `priority`, `time_next`)"
READ_APART = "KEY `key_idx` (`time_acked`, `tenant`, `priority`, `time_next`)"


@pytest.mark.parametrize(
    ("more", "indexes"),
    [
        ((), ()),
        (("vt_key=Tenant", "vt_max_per_key=2"), (ORDERED,)),
        (("vt_key=Tenant",), (READ_APART,)),
        (("vt_key=Tenant", "vt_max_per_key=2", "vt_fair=on"), (ORDERED, READ_APART)),
        (("vt_order=strict",), (ORDERED.replace("`tenant`, ", ""),)),
    ],
)
def test_the_indexes_have_the_key(more, indexes):
    assert key_column.index_definitions(parse_comment(comment(*more))) == indexes
