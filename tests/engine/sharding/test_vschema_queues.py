import json

import pytest

from streamfrom.engine.sharding.vschema import parse_vschema, vindex_of, with_queues
from streamfrom.sqlparse_ext.stored_forms import ColumnType


VSCHEMA = parse_vschema(
    json.dumps(
        {
            "sharded": True,
            "vindexes": {"h": {"type": "hash"}},
            "tables": {"t": {"column_vindexes": [{"column": "id", "name": "h"}]}},
        }
    )
)  # fmt: skip


@pytest.mark.parametrize(("vindex", "type_"), [("h", "hash"), ("xxhash", "xxhash")])
def test_a_queue_is_placed_by_a_vindex_of_the_vschema_or_by_a_type(vindex, type_):
    primary = with_queues(VSCHEMA, {"q": (vindex, "User_ID")}, {}).tables["q"].primary
    assert primary is not None
    assert (primary.column, primary.vindex.type) == ("user_id", type_)


def test_the_vschema_has_the_last_word():
    assert with_queues(VSCHEMA, {"t": ("xxhash", "other")}, {}) is VSCHEMA
    assert with_queues(VSCHEMA, {}, {}) is VSCHEMA


@pytest.mark.parametrize("vindex", ["nosuch", "multicol", ""])
def test_what_is_no_vindex_places_nothing(vindex):
    assert vindex_of(VSCHEMA.vindexes, vindex) is None
    assert with_queues(VSCHEMA, {"q": (vindex, "id")}, {}) is VSCHEMA


def test_columns_have_the_types_that_their_tables_say():
    number, text = ColumnType("bigint"), ColumnType("varchar(9)", "utf8mb4_general_ci")
    types = {"t": {"id": number}, "q": {"name": text}, "another": {"id": number}}
    for vindex, folds in (("unicode_loose_xxhash", True), ("xxhash", False)):
        tables = with_queues(VSCHEMA, {"q": (vindex, "name")}, types).tables
        (own,), (of_queue,) = tables["t"].column_vindexes, tables["q"].column_vindexes
        assert (own.type, of_queue.type) == (number, text)
        assert of_queue.folds is folds
