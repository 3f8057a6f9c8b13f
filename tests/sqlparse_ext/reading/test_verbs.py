"""The words that statements begin with."""

from streamfrom.sqlparse_ext.reading.utility_statements import COMPOUND, READERS
from streamfrom.sqlparse_ext.reading.verbs import STATEMENT_VERBS


def test_what_is_read_by_its_verb_may_begin_a_statement():
    assert set(READERS) - COMPOUND <= STATEMENT_VERBS


def test_a_word_that_begins_no_statement_is_not_there():
    assert "NOPE" not in STATEMENT_VERBS
