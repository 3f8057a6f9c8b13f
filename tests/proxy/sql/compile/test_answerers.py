import re

import pytest

from streamfrom.proxy.sql.compile.answerers import Answerer, answerer
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases
from tests.sqlparse_ext.facts import shape


@cases(sql=str, expected=lambda name: None if name == "SHARDS" else Answerer[name])
def test_who_answers(sql, expected):
    assert answerer(shape(sql), None) is expected
    assert answerer(shape(sql), "commerce") is expected


@pytest.mark.parametrize(
    ("sql", "instead"),
    [
        ("SHOW QUEUE PARTITIONS FROM q", "SELECT … FROM information_schema.partitions"),
        ("SHOW vitess_keyspaces", "SHOW VSCHEMA KEYSPACES"),
        ("SHOW KEYSPACES LIKE 'a%'", "SHOW VSCHEMA KEYSPACES"),
        ("SHOW VITESS_TARGET", "SELECT DATABASE()"),
    ],
)
def test_what_is_gone_says_what_to_use(sql, instead):
    with pytest.raises(Unsupported, match=re.escape(f"; use {instead}")):
        answerer(shape(sql), None)


@pytest.mark.parametrize("sql", ["SHOW FULL TABLES", "SELECT * FROM queues"])
def test_a_session_in_the_schema_of_the_status_tables_reads_them_by_name(sql):
    assert answerer(shape(sql), "streamfrom") is Answerer.STATUS_TABLES
    assert answerer(shape("SELECT 1"), "streamfrom") is None
