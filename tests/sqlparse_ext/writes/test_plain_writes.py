"""What is known of an ack without completing it is what its completed text says."""

import ast
import re
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.stored_forms import ColumnType, stored_form
from streamfrom.sqlparse_ext.writes.completion import complete
from streamfrom.sqlparse_ext.writes.message_effects import EffectKind, early_moment, effect
from streamfrom.sqlparse_ext.writes.plain_writes import plain_ack, plain_insert
from tests.cases import cases
from tests.sqlparse_ext.writes.test_completion import BY_PRIMARY, CURRENT, FIRST, LAZY, NOW_NS


NOW = b"%d" % NOW_NS
VALUES = [
    b"7", b"0", b"'7'", b"'a'", b"-5", b"5.5", b"0x05", b"NULL", b"1", b"5", NOW, b"99999999999999999999",
]  # fmt: skip
MOMENTS = [
    b"NOW()", b"NOW() + INTERVAL %b SECOND", b"UNIX_TIMESTAMP() * 1000000000", b"%b", b"-%b", b"NULL", b"time_next",
    b"CURRENT_TIMESTAMP", b"IF(%b, NOW(), 5)",
]  # fmt: skip
OTHERS = [
    b"", b", time_next = NULL", b", time_next = %b", b", epoch = 3", b", body = %b",
    b", epoch = epoch + %b",
]  # fmt: skip
CONDITIONS = [
    b"id = %b", b"id IN (%b, %b)", b"id IN (%b)", b"id = %b AND time_acked IS NULL", b"id > %b", b"priority = %b",
    b"id = %b AND priority = 3", b"id = %b OR id = %b", b"id = id + %b", b"id = %b LIMIT 1",
]  # fmt: skip
texts = st.builds(
    lambda moment, other, condition: b"UPDATE m SET time_acked = " + moment + other + b" WHERE " + condition,
    st.sampled_from(MOMENTS), st.sampled_from(OTHERS), st.sampled_from(CONDITIONS),
)  # fmt: skip
facts = st.sampled_from([CURRENT, LAZY, BY_PRIMARY])


def filled(text, values):
    return text % tuple(values[: text.count(b"%b")])


def of_completed(cache, sent, facts, now_ns):
    """Return the ids and the moment that the completed text names; None for what is no such ack."""
    done = complete(sent, facts, now_ns)
    completed = sent if done is None else cache.get(done.text)
    found = effect(completed, facts)
    if found is None or found.kind is not EffectKind.ACK:
        return None
    moment = early_moment(completed, found)
    return None if moment is None else (found.ids, moment, completed.shape)


def assert_completes(plain, sent, facts):
    text, done = plain.text(sent, NOW_NS), complete(sent, facts, NOW_NS)
    assert text is None or text == (sent.sql if done is None else done.text)
    return text


@given(texts, facts, st.data())
def test_what_is_known_is_what_the_completed_text_says(text, facts, data):
    values = st.lists(st.sampled_from(VALUES), min_size=4, max_size=4)
    cache = StatementCache()
    sample = cache.get(filled(text, data.draw(values)))
    plain = plain_ack(sample, facts, cache.get)
    if plain is None:
        return
    sent = cache.get(filled(text, data.draw(values)))
    # Values of other kinds make another shape, of which nothing is known.
    if sent.shape is sample.shape and (known := plain.of(sent, NOW_NS)):
        assert (*known, plain.shape) == of_completed(cache, sent, facts, NOW_NS)
        assert_completes(plain, sent, facts)


@pytest.mark.parametrize("facts", [CURRENT, LAZY, BY_PRIMARY])
@cases(sql=str.encode)
def test_the_usual_acks_are_known(sql, facts):
    cache = StatementCache()
    plain = plain_ack(cache.get(sql % b"7"), facts, cache.get)
    assert plain is not None
    sent = cache.get(sql % b"9")
    assert (*(plain.of(sent, NOW_NS) or ()), plain.shape) == of_completed(
        cache, sent, facts, NOW_NS
    )
    assert (assert_completes(plain, sent, facts) is None) == bool(sent.runs)


@pytest.mark.parametrize("gap", [b"  ", b" /* 100 % */ ", b"\n"])
def test_a_text_that_is_laid_out_otherwise_is_completed_where_it_is(gap):
    cache, sql = StatementCache(), b"UPDATE m SET time_acked = NOW()%bWHERE id = 7"
    plain = plain_ack(cache.get(sql % b" "), LAZY, cache.get)
    assert plain is not None
    sent = cache.get(sql % gap)
    assert sent.shape is cache.get(sql % b" ").shape
    assert assert_completes(plain, sent, LAZY) is None


def test_a_moment_that_is_none_is_left_to_the_completion():
    cache, sql = StatementCache(), b"UPDATE m SET time_acked = %b WHERE id = 7"
    plain = plain_ack(cache.get(sql % NOW), LAZY, cache.get)
    assert plain is not None
    sent = cache.get(sql % b"1700000000")
    assert plain.of(sent, NOW_NS) is None
    with pytest.raises(StreamfromError, match="nanoseconds"):
        complete(sent, LAZY, NOW_NS)


# What is known of an INSERT without completing it is what its text says once it is completed.
NUMBERED = replace(
    CURRENT, id_auto_increment=True, id_form=stored_form(ColumnType("bigint", ""))
)
UNSIGNED = replace(CURRENT, id_form=stored_form(ColumnType("tinyint unsigned", "")))
NAMED = replace(CURRENT, id_form=stored_form(ColumnType("char(8)", "utf8mb4_bin")))
UPPER = replace(CURRENT, id_form=stored_form(ColumnType("varchar(8)", "utf8mb4_general_ci")))
PROMPT = replace(NUMBERED, refuses_delays=True)
INSERTED = [
    *b"0 7 00007 255 256 -5 5.5 0x05 NULL DEFAULT TRUE '7' 'a' 'A ' '' 99999999999999999999 NOW() 'it''s'".split(),
    b"'a\\'b'", b"1764326638000000000", b"1700000000", b"999999999", b"99999999999999999", b"9999999999999999999",
]  # fmt: skip
COLUMNS = ["id", "ID", "priority", "body", "epoch", "time_next", "time_acked"]
HEADS = [b"INSERT INTO m", b"INSERT IGNORE INTO m", b"REPLACE INTO m", b"insert into `M`"]
TAILS = [b"", b" ON DUPLICATE KEY UPDATE body = 'x'", b" RETURNING id"]

tables = st.sampled_from([CURRENT, NUMBERED, UNSIGNED, NAMED, UPPER, PROMPT, FIRST])
value = st.sampled_from(INSERTED)


@given(
    st.sampled_from(HEADS), st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4, unique=True),
    st.sampled_from(TAILS), tables, st.data(),
)  # fmt: skip
def test_what_is_known_of_an_insert_is_what_its_completed_text_says(
    head, columns, tail, facts, data
):
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
