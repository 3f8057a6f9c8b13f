"""The root of all errors: a sentence, a code and a state."""

import pytest

from streamfrom.sqlparse_ext.errors import SqlError, StreamfromError, Unsupported


@pytest.mark.parametrize(
    ("error", "text", "code"),
    [
        (StreamfromError("x"), "x", (1105, "HY000")),
        (SqlError("x"), "You have an error in your SQL syntax; x", (1064, "42000")),
        (Unsupported("JOIN across shards"), "unsupported: JOIN across shards", (1235, "42000")),
    ],
)
def test_errors_know_their_words_and_codes(error, text, code):
    assert str(error) == text
    assert error.wire_code() == code
