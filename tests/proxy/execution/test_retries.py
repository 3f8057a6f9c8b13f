import pytest

from streamfrom.proxy.execution.retries import is_repeatable, was_refused_undone
from streamfrom.proxy.wire.resultset import Err
from tests.sqlparse_ext.facts import shape


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("SELECT 1", True),
        ("SHOW TABLES", True),
        ("EXPLAIN SELECT 1", True),
        ("UPDATE t SET a = 1", False),
        ("SELECT (", False),
    ],
)
def test_only_what_changes_nothing_may_be_repeated(kind, expected):
    assert is_repeatable(shape(kind)) is expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, False),
        (Err(1064, "42000", b"read-only"), False),
        (Err(1290, "HY000", b"--skip-grant-tables"), False),
        (Err(1290, "HY000", b"--read-only"), True),
        (Err(1053, "08S01", b""), True),
    ],
)
def test_what_a_server_refused_without_doing_anything(error, expected):
    assert was_refused_undone(error) is expected
