import ast

from streamfrom.proxy.local_statements.show_keyspaces import like, pattern_text
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


@cases(pattern=str, found=ast.literal_eval)
def test_it_matches_whole_names_as_a_server_would(pattern, found):
    matches = like(statement(f"SHOW VITESS_SHARDS LIKE '{pattern}'"))
    assert [name for name in ("shop/-80", "shop/80-") if matches.fullmatch(name)] == found


def test_its_text_is_that_of_the_literal():
    assert pattern_text(statement("SHOW DATABASES LIKE 'it''s%'")) == "it's%"
    assert pattern_text(statement("SHOW DATABASES LIKE x")) == ""
