import pytest

from streamfrom.sqlparse_ext.session.locks import LockCalls, lock_calls
from tests.sqlparse_ext.facts import statement


@pytest.mark.parametrize(
    ("sql", "calls"),
    [
        ("SELECT 'GET_LOCK(1, 2)'", LockCalls(frozenset(), False, False)),
        ("SELECT IS_USED_LOCK('a')", LockCalls(frozenset(), False, False)),
        ("SELECT GET_LOCK('a', 1)", LockCalls(frozenset({b"'a'"}), False, False)),
        (
            "DO GET_LOCK('a', 1), GET_LOCK(5, -1)",
            LockCalls(frozenset({b"'a'", b"5"}), False, False),
        ),
        ("SELECT GET_LOCK(CONCAT('a', 'b'), 1)", LockCalls(frozenset(), True, False)),
        ("SELECT GET_LOCK('a' 'b', 1)", LockCalls(frozenset(), True, False)),
        ("SELECT GET_LOCK(@a, 1)", LockCalls(frozenset(), True, False)),
        # These mean another name under another sql_mode, or in another character set.
        (r"SELECT GET_LOCK('\a', 1)", LockCalls(frozenset(), True, False)),
        ('SELECT GET_LOCK("a", 1)', LockCalls(frozenset(), True, False)),
        ("SELECT GET_LOCK('é', 1)", LockCalls(frozenset(), True, False)),
        ("SELECT RELEASE_ALL_LOCKS()", LockCalls(frozenset(), False, True)),
        (
            "SELECT RELEASE_ALL_LOCKS(), GET_LOCK('a', 1)",
            LockCalls(frozenset({b"'a'"}), False, False),
        ),
    ],
)
def test_the_locks_that_a_statement_asks_for_are_told(sql, calls):
    assert lock_calls(statement(sql)) == calls
