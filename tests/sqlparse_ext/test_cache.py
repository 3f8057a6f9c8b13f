"""The cache gives the same answers as parsing, and forgets what is not used."""

import pytest

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.errors import TooManyTokens
from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.statements import Kind, Uses
from streamfrom.sqlparse_ext.text.version_comments import ServerVersion


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
        b"INSERT INTO t VALUES " + b"(1,'a')," * 50_000 + b"(1,'a')",
        b"INSERT INTO t VALUES " + b"(?,?)," * 30_000 + b"(?,?)",
        b"INSERT INTO t VALUES " + b"(1+1,'a')," * 30_000 + b"(1,'a')",
        b"SELECT * FROM t WHERE a IN (" + b"1,'x'," * 50_000 + b"5)",
        b"SELECT 1 /* " + b"a b c " * 50_000 + b"*/",
        b"SELECT '" + b"a b c " * 50_000 + b"'",
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
