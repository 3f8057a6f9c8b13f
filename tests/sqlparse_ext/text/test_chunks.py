"""A large text is read as a small one would be, whatever its chunks are."""

import random

import pytest
from hypothesis import settings

from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.text import chunks, lexer
from streamfrom.sqlparse_ext.text.lexer import fingerprint, locate
from streamfrom.sqlparse_ext.text.tokens import tokenise
from tests.cases import in_turn


MODES = [
    DEFAULT_MODE,
    SqlMode.ANSI_QUOTES,
    SqlMode.NO_BACKSLASH_ESCAPES,
    SqlMode.ANSI_QUOTES | SqlMode.NO_BACKSLASH_ESCAPES,
]
LONG = [
    b"'" + b"a" * 200 + b"'", b"'" + b"''" * 90 + b"'", b"'" + b"\\'" * 90 + b"'",
    b"'" + b"\\\\" * 90 + b"'", b"'" + b'"' * 200 + b"'", b"_utf8mb4 '" + b"c" * 150 + b"'",
    b"x'" + b"ab" * 90 + b"'", b"0x" + b"ab" * 90, b"/*" + b"*" * 200 + b"*/ 1",
    b"/*" + b"c" * 200 + b"*/ 1", b"/**/" * 60 + b" 1", b" " * 200 + b" 1", b"-- " + b"x" * 200 + b"\n 1",
    b"#" + b"x" * 200 + b"\n 1", b"# a\n" * 70 + b"1",
]  # fmt: skip
SHORT = [b"1", b"-1", b"1.5e3", b"'a'", b"'it''s'", b"NULL", b"DEFAULT", b"a", b"`a b`", b"@v"]
SHORT += [b"NOW()", b"?", b"(1+2)", b"f(a, 'b')", b"/* c */ 2", b"_utf8'x'", b"n'x'", b"0x12"]
SHORT += [b"a.b", b"a IN (1, 2,3)", b"(a, b) IN ((1,2),(3,'x'))", b"x IN (1, y)", b"/*+ h */ 5"]
SHORT += [b"/*!50000 7 */", b"- 1", b"a -1", b"a=-1", b"CASE WHEN 1 THEN 'x' END", b"IN (1)"]
FORMS = [
    b"SELECT %s",
    b"SELECT * FROM t WHERE id IN (%s)",
    b"INSERT INTO t (a, b) VALUES (%s)",
    b" insert ignore into `t` values %s",
    b"UPDATE t SET a = 1, b = %s WHERE id = 5",
    b"/* c */ REPLACE t VALUES (%s) ON DUPLICATE KEY UPDATE a = 'x'",
]


@pytest.fixture
def tiny_chunks(monkeypatch):
    """Read a text in one go, then as a large one in chunks of a hundred bytes."""

    def sizes(chunk: int, large: int) -> None:
        monkeypatch.setattr(chunks, "CHUNK_BYTES", chunk)
        monkeypatch.setattr(lexer, "CHUNK_BYTES", chunk)
        for module in (chunks, lexer):
            monkeypatch.setattr(module, "LARGE_TEXT_BYTES", large)

    def both(sql, mode):
        sizes(1 << 30, 1 << 30)
        small = fingerprint(sql, mode)
        places = [token.start for token in tokenise(small.template).tokens]
        places += [token.end for token in tokenise(small.template).tokens]
        small_at = locate(sql, mode, places)
        sizes(100, 0)
        large = fingerprint(sql, mode)
        return small, small_at, large, locate(sql, mode, places)

    return both


def author(dice: random.Random) -> bytes:
    def values(pool: list[bytes], most: int) -> bytes:
        parts = [dice.choice(pool) for _ in range(dice.randint(1, most))]
        return dice.choice([b",", b", ", b" , "]).join(parts)

    form = dice.choice(FORMS)
    pools = [SHORT, SHORT + LONG, SHORT[:4] + LONG, SHORT[:7], [b"1", b"'a'"], LONG]
    pool = dice.choice(pools)
    if b"(%s)" in form or b"values %s" in form:
        rows = b"), (".join(values(pool, 12) for _ in range(dice.randint(1, 12)))
        if b"IN (" in form:
            rows = values(pool, 60)
        return form % (rows if b"(%s)" in form else b"(" + rows + b")")
    return form % values(pool, 60)


@in_turn
@pytest.mark.parametrize("seed", range(4 * settings().max_examples))
def test_a_text_read_in_chunks_is_the_one_read_in_one_go(seed, tiny_chunks):
    dice = random.Random(seed)
    sql = author(dice)
    mode = dice.choice(MODES)
    small, small_at, large, large_at = tiny_chunks(sql, mode)
    assert large.template == small.template
    assert tuple(large.literals) == small.literals
    assert large.runs == small.runs
    assert large_at == small_at
