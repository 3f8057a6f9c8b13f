from streamfrom.sqlparse_ext.selects.sources import (
    ALL,
    JoinEqualities,
    QueryBlock,
    Reference,
    Source,
)
from streamfrom.sqlparse_ext.statements import Slot, TableRef


def test_a_reference_is_known_by_its_source_and_column():
    columns = frozenset({Reference(0, "id"), Reference(1, ALL)})
    assert Reference(0, "id") in columns
    assert Reference(1, "id") not in columns


def test_a_query_without_a_derived_table_has_no_groupings():
    source = Source(
        TableRef(None, "t"), {"id": ((Slot(0),),)}, 0, is_main=True, is_certain=True
    )
    block = QueryBlock((Reference(0, "id"),), is_distinct=False, is_grouped=False)
    assert JoinEqualities((source,), (block,), (), limits_inside=False).groupings == ()
