from dataclasses import replace

import pytest

from streamfrom.engine.messaging.table.message_table import RawColumn
from streamfrom.proxy.errors import BadStreamKey
from streamfrom.proxy.sql.stream_keys import stream_keys
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table
from tests.sqlparse_ext.facts import statement


def keys(where, key="tenant"):
    comment = DEFAULT_COMMENT + (f",vt_key={key}" if key else "")
    table = loaded(raw_table("t", comment, texts=("tenant",)))
    return stream_keys(statement(f"STREAM * FROM t {where}"), table)


@pytest.mark.parametrize(
    ("where", "key", "found"),
    [
        ("", "tenant", None),
        ("", None, None),
        ("WHERE tenant = 'a'", "tenant", {b"'a'"}),
        ("WHERE TENANT IN ('a', 'it''s', 'a')", "tenant", {b"'a'", b"'it''s'"}),
        ("WHERE priority IN (5, '6')", "priority", {b"5", b"6"}),
    ],
)
def test_keys_are_literals(where, key, found):
    assert keys(where, key) == found


@pytest.mark.parametrize(
    ("where", "key", "words"),
    [
        ("WHERE tenant = 'a'", None, "t has none: ALTER QUEUE t SET (`key` = column)"),
        ("WHERE id = 5", "tenant", "takes tenant, the key of t (vt_key), and no other column"),
        ("WHERE tenant = NULL", "tenant", "tenant = NULL holds for no message"),
        ("WHERE tenant = 5", "tenant", "tenant is no number: write its value in quotes, '5'"),
        ("WHERE tenant = 5.5", "tenant", "in quotes, '5.5'"),
        ("WHERE priority = 'x'", "priority", "priority is a number, and 'x' is none"),
        ("WHERE priority = '1 OR 1'", "priority", "is none"),
        (
            f"WHERE priority IN ({', '.join('7' * 101)})",
            "priority",
            "100 values at most, not 101",
        ),
    ],
)
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
