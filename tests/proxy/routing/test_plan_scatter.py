import pytest

from streamfrom.proxy.routing.plan_scatter import scattered_select
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


@cases(sql=str, sentence=str)
def test_what_cannot_be_put_together_is_refused(sql, sentence):
    with pytest.raises(Unsupported, match=sentence):
        scattered(sql)
