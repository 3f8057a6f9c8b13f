"""The cache gives the same answers as parsing, and forgets what is not used."""

from weakref import ref

import pytest
from hypothesis import example, given, strategies as st

from streamfrom.sqlparse_ext.cache import Forms, StatementCache
from streamfrom.sqlparse_ext.errors import SqlError, TooManyTokens
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.statements import Kind, Uses
from streamfrom.sqlparse_ext.text.insert_rows import insert_rows
from streamfrom.sqlparse_ext.text.lexer_patterns import ROWS
from streamfrom.sqlparse_ext.text.version_comments import ServerVersion
from tests.sqlparse_ext.strategies import FRAGMENTS, MODES


def test_what_is_in_use_stays_and_the_rest_goes():
    cache = StatementCache(bytes_max=20_000)
    kept = cache.get(b"SELECT kept")
    dropped = cache.get(b"SELECT dropped")
    for number in range(200):
        cache.get(b"SELECT column%d" % number)
        assert cache.get(b"SELECT kept") is kept
    assert cache.get(b"SELECT dropped") is not dropped


def test_long_texts_are_not_kept_but_their_shape_is():
    cache = StatementCache()
    sql = b"SELECT '" + b"x" * 10_000 + b"'"
    one, other = cache.get(sql), cache.get(sql)
    assert one is not other
    assert one.shape is other.shape


def test_a_statement_of_too_many_tokens_is_refused_and_one_of_many_values_is_not():
    cache = StatementCache(tokens_max=1000)
    with pytest.raises(TooManyTokens, match="more than 1000 tokens"):
        cache.get(b"SELECT " + b"a," * 600 + b"a")
    assert cache.get(b"SELECT " + b"a," * 400 + b"a").shape.kind is Kind.SELECT
    for many in (
        b"INSERT INTO t VALUES " + b"(1,'a')," * 15_000 + b"(1,'a')",
        b"INSERT INTO t VALUES " + b"(?,?)," * 15_000 + b"(?,?)",
        b"INSERT INTO t VALUES " + b"(1+1,'a')," * 15_000 + b"(1,'a')",
        b"SELECT * FROM t WHERE a IN (" + b"1,'x'," * 15_000 + b"5)",
        b"SELECT 1 /* " + b"a b c " * 15_000 + b"*/",
        b"SELECT '" + b"a b c " * 15_000 + b"'",
        # A dump in one text.
        (b"INSERT INTO t VALUES " + b"(1+1,'a')," * 9_000 + b"(1,'a');\n") * 4,
        (b"INSERT INTO t VALUES " + b"(1,'a')," * 9_000 + b"(1,'a');\n") * 4,
    ):
        assert cache.get(many).shape.kind in (Kind.SELECT, Kind.INSERT)


def test_a_query_that_sqlglot_would_read_again_and_again_is_given_up():
    """Without a bound 40 JOINs would take it days."""
    shape = StatementCache().get(b"SELECT a FROM t " + b"JOIN t " * 40).shape
    assert shape.uses & Uses.UNPARSED
    assert (
        not StatementCache().get(b"SELECT a FROM t " + b"JOIN t " * 8).shape.uses
        & Uses.UNPARSED
    )


def test_dollars_quote_where_the_server_of_the_moment_says_so():
    versions = iter([(False, 90704), (True, 101119), (False, 80406)])
    cache = StatementCache(server=lambda: version)
    sql = b"SELECT 1 AS $a$; DELETE FROM t; SELECT 2 AS $a$"
    for quotes in (True, False, False):
        version = ServerVersion(*next(versions))
        for _ in range(2):
            found = cache.get(sql)
            assert (Uses.MULTIPLE in found.shape.uses) is not quotes
            assert (SqlMode.DOLLAR_QUOTES in found.mode) is quotes


# A text that is recognised is what reading it would say, whatever stands where its form has a literal.
PLACE = None
# What clients send, with places for their values.
TEXTS = [
    (b"UPDATE q SET time_acked = NOW() WHERE id = ", PLACE, b" AND time_acked IS NULL"),
    (b"UPDATE q SET time_acked = ", PLACE, b", time_next = NULL WHERE id IN (", PLACE, b",", PLACE, b")"),
    (b"INSERT INTO q2 (id, message) VALUES (", PLACE, b", ", PLACE, b")"),
    (b"INSERT INTO `q` (id,message,state) VALUES (", PLACE, b",", PLACE, b", NULL)"),
    (b"INSERT INTO t SET a = ", PLACE, b" ON DUPLICATE KEY UPDATE b = ", PLACE),
    (b"SELECT * FROM t WHERE a = ", PLACE, b" LIMIT ", PLACE),
    (b"DELETE FROM t WHERE a = ", PLACE, b" AND id IN (", PLACE, b") AND b = ", PLACE),
    (b"SELECT * FROM t WHERE id IN (", PLACE, b") OR id IN (", PLACE, b")"),
    (b"SELECT t.", PLACE, b", `b`.", PLACE, b", _latin1 ", PLACE, b" FROM t"),
]  # fmt: skip
PLAIN = [
    b"0", b"7", b"1764326638000000000", b"''", b"'x'", b"'it''s'", b"'a\\'b'", b"'{\"a\": 1}'",
]  # fmt: skip
HOSTILE = [
    *b"-5 +5 5. .5 1e5 1abc 0x1F 0b1 x'ff' b'01' N'x' _utf8mb4'x' \"x\" `x` ? NULL default @x 5;6".split(),
    b"'\\'", b"'\\\\'", b"'", b"''''", b"'a' 'b'", b"'a'-- \n", b"'a'#\n", b"'/*! x */'", b"'$$'", b"$$ $$", b"'a',",
    b"5 OR 1=1", b"' OR '1'='1", b"5) OR (1", b"'x'), ('y'", b"/* c */5", b"/*!5*/", b"-- 5\n5", b"'\x00\x01\xff\\\n'",
    b"1,2", b"1, 2,3", b"1 ,2", b"1,,2", b"1,", b"1, 'a'", b"1)", b"5\\", b"\xe9", b"'\xe9'", b"", b" ", b"--5", b"'a'='a'",
]  # fmt: skip
values = st.sampled_from(PLAIN + HOSTILE) | st.binary(max_size=6)
texts = st.sampled_from(TEXTS) | st.lists(
    st.sampled_from(FRAGMENTS) | st.just(b" ") | st.just(PLACE), max_size=9
).map(tuple)


def filled(text, literals):
    given_values = iter(literals)
    return b"".join(next(given_values) if part is PLACE else part for part in text)


def what_is(cache, sql, mode):
    """Return all that a statement says of its text."""
    try:
        statement = cache.get(sql, mode)
    except SqlError as error:
        return str(error)
    found = [
        statement.sql, statement.mode, statement.shape.template, list(statement.literals),
        statement.runs, statement.shape.tables, statement.shape.insert,
    ]  # fmt: skip
    if statement.shape.template.endswith(ROWS) and (rows := insert_rows(statement)):
        found += [len(rows), [rows.position(index) for index in range(4)]]
        found += [rows.spans, rows.elements(0), rows.select_rows([0])]
    return found


def alike(plain, number):
    """Return literals of the same kinds."""
    return [b"%d" % number if one[:1] != b"'" else b"'%d'" % number for one in plain]


def learnt(text, plain):
    """Return a cache that has read texts which differ in plain values, as often as it takes to know their form."""
    cache = StatementCache()
    for number in range(8):
        cache_get(cache, filled(text, alike(plain, number)))
    return cache


def cache_get(cache, sql, mode=DEFAULT_MODE):
    try:
        return cache.get(sql, mode)
    except SqlError:
        return None


@given(texts, st.data(), MODES)
def test_what_is_recognised_is_what_reading_says(text, data, mode):
    places = text.count(PLACE)
    plain = data.draw(st.lists(st.sampled_from(PLAIN), min_size=places, max_size=places))
    cache = learnt(text, plain)
    for _ in range(4):
        literals = [one if data.draw(st.booleans()) else data.draw(values) for one in plain]
        sql = filled(text, literals)
        assert what_is(cache, sql, mode) == what_is(StatementCache(), sql, mode)


@given(st.sampled_from(TEXTS[:7]), st.data())
def test_texts_that_come_often_are_recognised(text, data):
    places = text.count(PLACE)
    # Lists of other things than integers are read.
    has_list = any(b" IN (" in part for part in text if part is not PLACE)
    known = st.sampled_from(PLAIN[:3] if has_list else PLAIN)
    plain = data.draw(st.lists(known, min_size=places, max_size=places))
    forms, cache = Forms(), StatementCache()
    for number in range(8):
        forms.learn(cache.get(filled(text, alike(plain, number))))
    same_kinds = [
        data.draw(st.sampled_from([x for x in PLAIN if (x[:1] == b"'") == (one[:1] == b"'")]))
        for one in plain
    ]
    sql = filled(text, same_kinds)
    statement = forms.recognise(sql, DEFAULT_MODE)
    assert statement is not None
    assert statement.sql == sql


@example(b"5", SqlMode.ANSI_QUOTES)
@given(st.sampled_from(PLAIN), MODES.filter(bool))
def test_other_modes_are_read(value, mode):
    text = (b"SELECT * FROM t WHERE a = ", PLACE)
    cache = learnt(text, [value])
    assert cache.get(filled(text, [value]), mode).mode == mode


def test_shapes_are_kept_by_their_forms_alone_and_long_ones_have_none():
    forms = Forms()

    def learnt_shape(text):
        statement = StatementCache().get(text)
        forms.learn(statement)
        return ref(statement.shape)

    assert learnt_shape(b"SELECT 1 FROM t")() is None

    cache = StatementCache()
    long = b"SELECT a, " + b", ".join(b"column%d" % number for number in range(300))
    for number in range(9):
        forms.learn(cache.get(long + b" FROM t WHERE id = %d" % number))
    assert forms.recognise(long + b" FROM t WHERE id = 9", DEFAULT_MODE) is None
