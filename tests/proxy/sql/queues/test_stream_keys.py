import ast
from dataclasses import replace

import pytest

from streamfrom.engine.messaging.table.message_table import RawColumn
from streamfrom.proxy.errors import BadStreamKey
from streamfrom.proxy.sql.queues.stream_keys import stream_keys
from tests.cases import cases
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table
from tests.sqlparse_ext.facts import statement


def keys(where, key="tenant"):
    comment = DEFAULT_COMMENT + (f",vt_key={key}" if key else "")
    table = loaded(raw_table("t", comment, texts=("tenant",)))
    return stream_keys(statement(f"STREAM * FROM t {where}"), table)


@cases(where=str, key=ast.literal_eval, found=ast.literal_eval)
def test_keys_are_literals(where, key, found):
    assert keys(where, key) == found


@cases(where=str, key=ast.literal_eval, words=str)
def test_what_is_no_key_is_told_the_way(where, key, words):
    with pytest.raises(BadStreamKey) as caught:
        keys(where, key)
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", ["date", "datetime", "timestamp", "time", "enum", "set"])
def test_a_key_that_can_be_written_in_many_ways_is_refused(kind):
    raw = raw_table("t", DEFAULT_COMMENT + ",vt_key=day")
    day = RawColumn("day", kind, None, nullable=True)
    table = loaded(replace(raw, columns=(*raw.columns, day)))
    with pytest.raises(BadStreamKey, match=f"takes no key of the type {kind.upper()}, whose"):
        stream_keys(statement("STREAM * FROM t WHERE day = '2026-11-26'"), table)
    assert stream_keys(statement("STREAM * FROM t"), table) is None
