from dataclasses import replace

import pytest

from streamfrom.proxy.routing.vschema_tables import VschemaTables, not_in_vschema
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.literal_values import Number
from tests.cases import cases
from tests.proxy.keyspaces import SHARDED


ALL = VschemaTables(SHARDED, SHARDED.shards)


@pytest.mark.parametrize("values", [None, [Number("1.5")], [b"5abc"]])
def test_values_that_no_vindex_knows_may_be_on_any_shard(values):
    assert ALL.rows("t").shares(values) is None


def test_numbers_may_equal_strings_of_any_shard():
    assert ALL.rows("named").shares([b"5", 5]) is None
    assert ALL.rows("named").shares([b"5"]) is not None


@cases(table=str, sentence=str)
def test_a_table_without_a_vindex_column_says_so(table, sentence):
    with pytest.raises(Unsupported, match=sentence):
        ALL.column(table)


def test_an_unknown_table_is_told_with_the_line_that_would_make_it_known():
    by_name = ALL.get("named").primary
    told = not_in_vschema(SHARDED, "q", by_name)
    assert told.endswith(
        'add to its tables: "q": {"column_vindexes": [{"column": "name", "name": "md5"}]}'
    )
    told = not_in_vschema(replace(SHARDED, vschema=None), "q", by_name)
    assert told.endswith('and its vindexes: "md5": {"type": "md5"}')
    assert not_in_vschema(SHARDED, "q").endswith(
        ", with the column that places its rows in place of id"
    )
