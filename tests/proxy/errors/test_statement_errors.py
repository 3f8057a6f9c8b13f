import pytest

from streamfrom.proxy.errors.statement_errors import (
    BadPrefetch,
    DistinctTooLarge,
    EmptyQuery,
    MergeTooLarge,
    NotPreparable,
    UnknownStatement,
)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (EmptyQuery(), "Query was empty"),
        (
            UnknownStatement(4, "mysqld_stmt_execute"),
            "Unknown prepared statement handler (4) given to mysqld_stmt_execute",
        ),
    ],
)
def test_sentences_are_those_of_mysql(error, sentence):
    assert str(error) == sentence


def test_a_bad_prefetch_is_shown_shortened_and_in_ascii():
    assert str(BadPrefetch("é" * 100)).endswith(f"0 for no limit, not '{'?' * 40}'")


def test_what_is_refused_says_the_cure():
    assert "raise merge_memory" in str(MergeTooLarge(1 << 20))
    assert "raise merge_memory" in str(DistinctTooLarge(1 << 20))
    assert str(NotPreparable("STREAM")).endswith("STREAM; send it as text")
