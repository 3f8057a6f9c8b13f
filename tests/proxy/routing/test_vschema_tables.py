import pytest

from streamfrom.proxy.errors import BadVindexValue
from streamfrom.proxy.routing.vschema_tables import VschemaTables
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.literal_values import Number
from streamfrom.sqlparse_ext.statements import OPAQUE
from tests.cases import cases
from tests.proxy.keyspaces import HIGH, HIGH_SHARD, LOW_SHARD, SHARDED


ALL = VschemaTables(SHARDED, SHARDED.shards)
LOW_ONLY = VschemaTables(SHARDED, (LOW_SHARD,))


@pytest.mark.parametrize("values", [None, [Number("1.5")], [b"5abc"]])
def test_values_that_no_vindex_knows_may_be_on_any_shard(values):
    assert ALL.rows("t").shares([values]) is None


def test_numbers_may_equal_strings_of_any_shard():
    assert ALL.rows("named").shares([[b"5", 5]]) is None
    assert ALL.rows("named").shares([[b"5"]]) is not None


def test_a_new_row_has_one_owner():
    assert ALL.rows("t").owner([HIGH]) == HIGH_SHARD
    with pytest.raises(BadVindexValue):
        ALL.rows("t").owner([None])
    with pytest.raises(Unsupported, match="an expression for the vindex column 'id'"):
        ALL.rows("t").owner([OPAQUE])
    with pytest.raises(Unsupported, match="which is not in the target"):
        LOW_ONLY.rows("t").owner([HIGH])


def test_reference_and_pinned_tables_are_told_apart():
    assert ALL.is_reference("ref")
    assert ALL.pinned_to("ref") is None
    assert ALL.pinned_to("pin_high") == HIGH_SHARD
    assert not ALL.is_reference("t")
    with pytest.raises(Unsupported, match="table 'pin_high' of shard '80-'"):
        LOW_ONLY.pinned_to("pin_high")


def test_equal_strings_may_be_on_several_shards():
    assert ALL.equality("t") == "numeric"
    assert ALL.equality("named") is None


@cases(table=str, sentence=str)
def test_a_table_without_a_vindex_column_says_so(table, sentence):
    with pytest.raises(Unsupported, match=sentence):
        ALL.column(table)
