from streamfrom.sqlparse_ext.session.sequence_calls import asks_sequence
from streamfrom.sqlparse_ext.text.tokens import statement_tokens
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


@cases(sql=str, asks=str)
def test_a_value_of_a_sequence_is_seen_wherever_it_stands(sql, asks):
    tokens = statement_tokens(statement(sql).shape.template)
    assert asks_sequence([token.key for token in tokens]) is bool(asks)
