import pytest

from streamfrom.sqlparse_ext.session.sequence_calls import asks_sequence
from streamfrom.sqlparse_ext.text.tokens import statement_tokens
from tests.sqlparse_ext.facts import statement


def asks(sql):
    return asks_sequence(
        [token.key for token in statement_tokens(statement(sql).shape.template)]
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT NEXTVAL(s)",
        "SELECT 1 + setval ( alpha.s, 5)",
        "SELECT NEXT VALUE FOR s",
        "INSERT INTO t VALUES (PREVIOUS/**/VALUE FOR s)",
        "SELECT LASTVAL(s)",
    ],
)
def test_a_value_of_a_sequence_is_seen_wherever_it_stands(sql):
    assert asks(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nextval FROM t",
        "SELECT 'NEXTVAL(s)'",
        "SELECT value FROM t FOR UPDATE",
        "SELECT `NEXTVAL`",
        "/* x */",
    ],
)
def test_what_is_only_called_so_is_none(sql):
    assert not asks(sql)
