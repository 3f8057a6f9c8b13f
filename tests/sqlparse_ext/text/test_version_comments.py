"""Version comments by the servers' rule; `tests/integration/test_version_comments.py` asks them."""

import ast
from collections.abc import Callable
from functools import partial

import pytest

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.statements import Kind
from streamfrom.sqlparse_ext.text.chunks import between_chunks
from streamfrom.sqlparse_ext.text.version_comments import (
    ServerVersion,
    resolution,
    resolved,
    server_version,
)
from tests.cases import cases, in_turn
from tests.growth import is_linear


MARIADB = server_version("5.5.5-10.11.19-MariaDB-log")
MYSQL = server_version("9.7.4-2")


def words(sql: str, server: ServerVersion, mode: SqlMode = DEFAULT_MODE) -> str:
    text = resolved(sql.encode(), mode, server).decode()
    return " ".join(text.replace("/**/", " ").split())


def test_versions():
    assert ServerVersion(is_mariadb=True, version=101119) == MARIADB
    assert ServerVersion(is_mariadb=False, version=90704) == MYSQL
    assert server_version("no version") == (False, 0)


@cases(sql=str, on_mariadb=ast.literal_eval, on_mysql=str)
def test_what_each_server_reads(sql, on_mariadb, on_mysql):
    assert words(sql, MARIADB) == (sql if on_mariadb is None else on_mariadb)
    assert words(sql, MYSQL) == (sql if on_mysql is None else on_mysql)


def test_quotes_are_those_of_the_mode():
    sql = "'\\' /*! a */"
    assert words(sql, MYSQL) == sql
    assert words(sql, MYSQL, SqlMode.NO_BACKSLASH_ESCAPES) == "'\\' a"
    sql = '"\\" /*! a */'
    assert words(sql, MYSQL) == sql
    assert words(sql, MYSQL, SqlMode.ANSI_QUOTES) == '"\\" a'


def test_two_signs_never_become_a_comment():
    assert resolved(b"1--/*! 2 */", DEFAULT_MODE, MYSQL) == b"1--/**/ 2  "


def test_a_text_without_is_the_same_object():
    sql = b"SELECT '!'"
    assert resolved(sql, DEFAULT_MODE, MYSQL) is sql
    assert resolution(sql, DEFAULT_MODE, MYSQL) == []


def test_half_a_character_is_no_quote_beside_a_version_comment():
    sql = b"SELECT '\xb3\\', /*!50000 2 */ '\xb3\\' /*!99999 3 */"
    found = resolved(sql, SqlMode.GBK, MYSQL)
    assert found.split() == [b"SELECT", b"'\xb3\\',", b"2", b"'\xb3\\'"]
    assert b"/*!50000 2 */" in resolved(sql, DEFAULT_MODE, MYSQL)


def test_texts_of_one_cache_follow_the_server_of_the_moment():
    servers = [MARIADB, MYSQL]
    cache = StatementCache(server=lambda: servers[0])
    sql = b"/*!50700 SELECT */ DELETE FROM t"
    assert cache.get(sql).shape.kind is Kind.DELETE
    servers.reverse()
    assert cache.get(sql).shape.kind is Kind.SELECT
    assert b"!" not in cache.get(sql).sql


@pytest.mark.parametrize(
    "piece", [b"/*!", b"/*!99999", b"*/", b"'", b'"', b"/*", b"*/*", b"--", b"/*!99999/*", b"-", b"`"]
)  # fmt: skip
def test_time_is_linear(piece):
    def reading(count: int) -> Callable[[], object]:
        return partial(resolved, b"/*! " + piece * count, DEFAULT_MODE, MARIADB)

    assert is_linear(reading, 5_000, 50_000)


@in_turn
@pytest.mark.parametrize(
    "piece", [b"x" * 64, rb"\n", b"''", b"1,", b"'a',", b"`", b"/* */", b"*", b"-- \n", b"\\\\"]
)
@pytest.mark.parametrize("head", [b"/*!50000 SELECT */ ", b"/*!50000 '*/ '", b"/*!99999 "])
def test_others_may_run_before_half_a_megabyte_is_read(head, piece):
    text = head + piece * ((1 << 19) // len(piece))
    turns = 0

    def count() -> None:
        nonlocal turns
        turns += 1

    token = between_chunks.set(count)
    try:
        resolved(text, DEFAULT_MODE, MYSQL)
    finally:
        between_chunks.reset(token)
    assert turns


def test_a_literal_of_any_length_is_one():
    for inner in (b"x" * 5000, rb"\'" * 5000, b"''" * 5000):
        for behind, after in ((b" /*!99999 a*/", b" "), (b" /*! a*/", b"   a ")):
            literal = b"'" + inner + b"/*!99999 '"
            found = resolved(literal + behind, DEFAULT_MODE, MYSQL).replace(b"/**/", b" ")
            assert found.split() == [*literal.split(), *after.split()]
