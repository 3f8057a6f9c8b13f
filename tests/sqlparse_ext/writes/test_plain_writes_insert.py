"""What is known of an INSERT without completing it is what its text says once it is completed."""

import ast
import re
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.stored_forms import ColumnType, stored_form
from streamfrom.sqlparse_ext.writes.completion import complete
from streamfrom.sqlparse_ext.writes.message_effects import EffectKind, effect
from streamfrom.sqlparse_ext.writes.plain_writes import plain_insert
from tests.cases import cases
from tests.sqlparse_ext.writes.test_completion import CURRENT, FIRST, NOW_NS


NUMBERED = replace(
    CURRENT, id_auto_increment=True, id_form=stored_form(ColumnType("bigint", ""))
)
UNSIGNED = replace(CURRENT, id_form=stored_form(ColumnType("tinyint unsigned", "")))
NAMED = replace(CURRENT, id_form=stored_form(ColumnType("char(8)", "utf8mb4_bin")))
UPPER = replace(CURRENT, id_form=stored_form(ColumnType("varchar(8)", "utf8mb4_general_ci")))
PROMPT = replace(NUMBERED, refuses_delays=True)
VALUES = [
    *b"0 7 00007 255 256 -5 5.5 0x05 NULL DEFAULT TRUE '7' 'a' 'A ' '' 99999999999999999999 NOW() 'it''s'".split(),
    b"'a\\'b'", b"1764326638000000000", b"1700000000", b"999999999", b"99999999999999999", b"9999999999999999999",
]  # fmt: skip
COLUMNS = ["id", "ID", "priority", "body", "epoch", "time_next", "time_acked"]
HEADS = [b"INSERT INTO m", b"INSERT IGNORE INTO m", b"REPLACE INTO m", b"insert into `M`"]
TAILS = [b"", b" ON DUPLICATE KEY UPDATE body = 'x'", b" RETURNING id"]

facts = st.sampled_from([CURRENT, NUMBERED, UNSIGNED, NAMED, UPPER, PROMPT, FIRST])
value = st.sampled_from(VALUES)


@given(
    st.sampled_from(HEADS), st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4, unique=True),
    st.sampled_from(TAILS), facts, st.data(),
)  # fmt: skip
def test_what_is_known_is_what_the_completed_text_says(head, columns, tail, facts, data):
    def text(values):
        names = ", ".join(columns).encode()
        return b"%b (%b) VALUES (%b)%b" % (head, names, b", ".join(values), tail)

    cache = StatementCache()
    for number in range(8):
        cache.get(text([b"%d" % number if data.draw(st.booleans()) else b"'a'"] * len(columns)))
    count = data.draw(st.integers(len(columns) - 1, len(columns)))
    sent = cache.get(text(data.draw(st.lists(value, min_size=count, max_size=count))))
    plain = plain_insert(sent.shape, facts)
    known = None if plain is None else plain.of(sent)
    if known is not None and count == len(columns):  # a server refuses any other count
        assert complete(sent, facts, NOW_NS) is None
        assert known == effect(StatementCache().get(sent.sql), facts)


def plainly(columns, values):
    """Return what is known of an INSERT behind others of its form."""
    cache, text = StatementCache(), b"INSERT INTO m (%b) VALUES (%b)" % (columns, values)
    for number in range(9):
        cache.get(re.sub(rb"\d+", b"%d" % number, text))
    sent = cache.get(text)
    plain = plain_insert(sent.shape, NUMBERED)
    return None if plain is None else plain.of(sent)


@cases(columns=str.encode, values=str.encode, ids=ast.literal_eval)
def test_the_usual_inserts_are_known(columns, values, ids):
    found = plainly(columns, values)
    assert found is not None
    assert (found.kind, found.ids) == (EffectKind.NEW, ids)


@cases(columns=str.encode, values=str.encode)
def test_what_the_server_would_change_is_left_to_it(columns, values):
    assert plainly(columns, values) is None


def test_an_id_that_the_table_does_not_make_must_be_there():
    sent = StatementCache().get(b"INSERT INTO m (body) VALUES (1)")
    assert plain_insert(sent.shape, UNSIGNED) is None


@pytest.mark.parametrize("mistake", [b"time_next", b"time_acked"])
def test_what_is_no_moment_is_left_to_the_completion(mistake):
    cache, text = StatementCache(), b"INSERT INTO m (id, %b) VALUES (1, %%d)" % mistake
    for number in range(9):
        cache.get(text % (NOW_NS + number))
    sent = cache.get(text % 1_700_000_000)
    plain = plain_insert(sent.shape, NUMBERED)
    assert plain is None or plain.of(sent) is None
    with pytest.raises(StreamfromError, match="nanoseconds"):
        complete(sent, NUMBERED, NOW_NS)
