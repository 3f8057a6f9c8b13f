import pytest

from streamfrom.proxy.routing.plan_scatter import scattered_select
from streamfrom.proxy.routing.routes import Concatenate, Merge
from streamfrom.proxy.routing.vschema_tables import VschemaTables
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import TableRef
from tests.cases import cases
from tests.proxy.keyspaces import SHARDED
from tests.sqlparse_ext.facts import shape


TABLES = VschemaTables(SHARDED, SHARDED.shards)
T, MSG = TableRef(None, "t"), TableRef(None, "msg", "m")


def scattered(sql, *main, certain=None):
    tables = main or (T,)
    return scattered_select(TABLES, shape(sql), SHARDED.shards, tables, certain or tables)


def test_rows_with_windows_that_are_each_on_one_shard_are_merged_like_others():
    sql = "SELECT id, COUNT(*) OVER (PARTITION BY id) AS n FROM t ORDER BY n DESC LIMIT 3"
    found = scattered(sql)
    assert isinstance(found, Merge)
    assert not found.in_groups
    sql = "SELECT COUNT(*) OVER (PARTITION BY m.id) FROM t JOIN msg m ON t.id = m.id"
    assert scattered(sql, T, MSG) == Concatenate(SHARDED.shards)
    with pytest.raises(Unsupported, match="a window function"):
        scattered(sql.replace("JOIN", "LEFT JOIN"), T, MSG, certain=(T,))


@cases(sql=str, sentence=str)
def test_what_cannot_be_put_together_is_refused(sql, sentence):
    with pytest.raises(Unsupported, match=sentence):
        scattered(sql)
