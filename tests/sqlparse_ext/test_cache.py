"""The cache gives the same answers as parsing, and forgets what is not used."""

from sqlparse_ext.cache import StatementCache
from sqlparse_ext.statements import SqlMode


def test_the_same_text_is_the_same_statement():
    cache = StatementCache()
    assert cache.get(b"SELECT 1") is cache.get(b"SELECT " + b"1")


def test_texts_of_one_template_share_their_shape_and_keep_their_values():
    cache = StatementCache()
    one = cache.get(b"SELECT * FROM t WHERE id = 5 -- a")
    other = cache.get(b"SELECT  * FROM t WHERE id = 'x' -- b")
    assert one.shape is not other.shape  # a number and a string
    third = cache.get(b"SELECT *\nFROM t WHERE id = 77 -- c")
    assert third.shape is one.shape
    assert third.values(third.shape.conditions["id"]) == [77]
    assert one.values(one.shape.conditions["id"]) == [5]


def test_modes_are_kept_apart():
    cache = StatementCache()
    sql = b'SELECT * FROM t WHERE id = "x"'
    assert cache.get(sql).shape.conditions.keys() == {"id"}
    assert not cache.get(sql, SqlMode.ANSI_QUOTES).shape.conditions
    assert cache.get(sql).shape.conditions.keys() == {"id"}


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
