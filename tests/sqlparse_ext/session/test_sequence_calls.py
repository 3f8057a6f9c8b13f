from streamfrom.sqlparse_ext.session.sequence_calls import asks_sequence
from streamfrom.sqlparse_ext.text.tokens import statement_tokens
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


def asks(sql):
    return asks_sequence(
        [token.key for token in statement_tokens(statement(sql).shape.template)]
    )


@cases(sql=str)
def test_a_value_of_a_sequence_is_seen_wherever_it_stands(sql):
    assert asks(sql)


@cases(sql=str)
def test_what_is_only_called_so_is_none(sql):
    assert not asks(sql)
