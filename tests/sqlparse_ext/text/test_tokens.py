from streamfrom.sqlparse_ext.text.tokens import tokenise
from tests.cases import cases


@cases(template=str.encode, expected=str.split)
def test_a_template_becomes_these_keys(template, expected):
    assert [token.key for token in tokenise(template).tokens] == expected
