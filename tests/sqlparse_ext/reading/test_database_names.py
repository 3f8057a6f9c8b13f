"""Where statements name databases."""

import ast

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.errors import SqlError
from streamfrom.sqlparse_ext.reading.database_names import Qualified, database_names, renamed
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.text.lexer import splice
from tests.cases import cases, lines
from tests.sqlparse_ext.facts import statement
from tests.sqlparse_ext.strategies import MODES, texts


# Statements that servers take, with Ks where a database is named, and ks where the same word is a table, an alias or a text.
STATEMENTS = lines(__file__, "test_each_name_of_a_database_is_found_and_no_other")


def rewritten(sql, mapping, mode=DEFAULT_MODE):
    found = statement(sql, mode)
    return splice(found.sql, mode, renamed(found.shape, mapping))


@cases(line=str)
def test_each_name_of_a_database_is_found_and_no_other(line):
    sql = line.replace("Ks", "ks").encode()
    assert rewritten(sql, {"ks": "db"}).decode() == line.replace("Ks", "`db`")
    assert rewritten(sql, {"other": "db"}) == sql


@given(
    line=st.sampled_from(STATEMENTS),
    blanks=st.lists(st.sampled_from([" ", "\n\t", " /* ks.t */ ", "/**/ ", " -- ks.\n", " # x\n"])),
    quote=st.sampled_from(["ks", "`ks`", '"ks"']),
    name=st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=8),
)  # fmt: skip
def test_quotes_blanks_and_comments_change_nothing(line, blanks, quote, name):
    mode = SqlMode.ANSI_QUOTES if quote[0] == '"' else DEFAULT_MODE
    words = line.split(" ")
    gaps = [*blanks, *([" "] * len(words))]
    spaced = "".join(word + gap for word, gap in zip(words, gaps, strict=False))
    new = "`" + name.replace("`", "``") + "`"
    found = rewritten(spaced.replace("Ks", quote).encode(), {"ks": name}, mode)
    assert found.decode() == spaced.replace("Ks", new)


@cases(sql=str, expected=str)
def test_a_qualifier_is_dropped_where_no_one_name_serves(sql, expected):
    assert rewritten(sql.encode(), {"ks": None}).decode() == expected


@pytest.mark.parametrize(
    ("sql", "roles"),
    [
        ("SELECT ks.f() FROM ks.t", [Qualified.PROGRAM, Qualified.TABLE]),
        ("CALL ks.p()", [Qualified.PROGRAM]),
        ("ALTER TABLE ks.t ADD FOREIGN KEY (a) REFERENCES ks.u (a)", [Qualified.TABLE, Qualified.REFERENCE]),
        ("SELECT NEXTVAL(ks.sq), NEXT VALUE FOR ks.sq", [Qualified.PROGRAM, Qualified.PROGRAM]),
        ("DROP TRIGGER ks.tg", [Qualified.PROGRAM]),
        ("SHOW TABLES FROM ks", [Qualified.ALONE]),
    ],
)  # fmt: skip
def test_what_a_name_stands_before(sql, roles):
    assert [each.role for each in database_names(statement(sql).shape).places] == roles


@cases(sql=str, has=ast.literal_eval)
def test_tables_without_a_database(sql, has):
    assert database_names(statement(sql).shape).has_unqualified_tables is has


@cases(sql=str, read=ast.literal_eval)
def test_the_tables_that_queries_read(sql, read):
    found = database_names(statement(sql).shape).read
    assert [(each.schema, each.name, each.has_alias) for each in found] == read


@given(sql=texts, mode=MODES)
def test_any_text_is_read_and_renaming_twice_changes_nothing_more(sql, mode):
    try:
        once = rewritten(sql, {"ks": "db"}, mode)
    except SqlError:  # a STREAM that is none
        return
    assert rewritten(once, {"ks": "db"}, mode) == once
