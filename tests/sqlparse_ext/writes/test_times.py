"""Expressions that mean a moment."""

import pytest

from sqlparse_ext.writes.times import moment_ns


NOW_NS = 1_700_000_000_123_456_789
SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "offset_ns"),
    [
        ("NOW()", 0),
        ("now(6)", 0),
        ("CURRENT_TIMESTAMP", 0),
        ("CURRENT_TIMESTAMP()", 0),
        ("current_timestamp(3)", 0),
        ("LOCALTIMESTAMP", 0),
        ("SYSDATE(6)", 0),
        ("UNIX_TIMESTAMP()", 0),
        ("NOW() + INTERVAL 5 SECOND", 5 * SECOND),
        ("NOW(6)-INTERVAL 2 MINUTE", -120 * SECOND),
        ("NOW() + INTERVAL 1.5 SECOND", SECOND * 3 // 2),
        ("NOW() + INTERVAL '7' HOUR", 7 * 3600 * SECOND),
        ("NOW() + INTERVAL 3 DAY", 3 * 86400 * SECOND),
        ("NOW() + INTERVAL 1 WEEK", 7 * 86400 * SECOND),
        ("NOW() + INTERVAL 9 MICROSECOND", 9000),
        ("CURRENT_TIMESTAMP + INTERVAL 1 SECOND", SECOND),
        ("DATE_ADD(NOW(), INTERVAL 1 HOUR)", 3600 * SECOND),
        ("DATE_SUB(NOW(6), INTERVAL 1 HOUR)", -3600 * SECOND),
        ("UNIX_TIMESTAMP() + 30", 30 * SECOND),
        ("UNIX_TIMESTAMP() - 30", -30 * SECOND),
    ],
)
def test_moments(text, offset_ns):
    assert moment_ns(text.encode(), NOW_NS) == NOW_NS + offset_ns


@pytest.mark.parametrize(
    "text",
    [
        "5", "NULL", "'NOW()'", "UTC_TIMESTAMP()", "NOW", "NOW() + 5", "UNIX_TIMESTAMP() * 1000000000",
        "UNIX_TIMESTAMP(NOW())", "NOW() + INTERVAL a SECOND", "NOW() + INTERVAL 1 MONTH",
        "NOW() + INTERVAL 1.5 MINUTE", "NOW() + INTERVAL '1:30' MINUTE", "NOW() + INTERVAL 'nan' SECOND",
        "NOW() + INTERVAL 1e999999 SECOND", "NOW() + INTERVAL 1 SECOND + 1", "DATE_ADD(x, INTERVAL 1 DAY)",
        "(NOW())", "NOW() + INTERVAL @x SECOND", "`NOW`()", "",
    ],
)  # fmt: skip
def test_everything_else_is_the_writers_affair(text):
    assert moment_ns(text.encode(), NOW_NS) is None
