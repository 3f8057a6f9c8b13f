"""Expressions that mean a moment."""

import pytest

from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE
from streamfrom.sqlparse_ext.statements import Kind, Shape, Statement, Uses
from streamfrom.sqlparse_ext.text.lexer import fingerprint
from streamfrom.sqlparse_ext.text.tokens import Cursor, tokenise
from streamfrom.sqlparse_ext.writes.times import (
    NO_MOMENTS,
    Mixture,
    MomentPlan,
    TimeColumns,
    read_moment,
)


NOW_NS = 1_700_000_000_123_456_789
SECOND = 1_000_000_000


def moment_ns(expression):
    """Return the nanoseconds that an expression means, None where it means none."""
    template, literals, runs = fingerprint(expression, DEFAULT_MODE)
    tokens = tokenise(template).tokens
    moment = read_moment(Cursor(tokens, template), len(tokens))
    if moment is None:
        return None
    shape = Shape(Kind.OTHER, Uses(0), template)
    return moment.ns(Statement(expression, DEFAULT_MODE, shape, literals, runs), NOW_NS)


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
        ("UTC_TIMESTAMP()", 0),
        ("UTC_TIMESTAMP(6) + INTERVAL 1 DAY", 86400 * SECOND),
        ("UNIX_TIMESTAMP(NOW(6))", 0),
        ("UNIX_TIMESTAMP(NOW() - INTERVAL 1 HOUR) + 5", -3595 * SECOND),
        ("(NOW())", 0),
        ("((NOW() + INTERVAL 1 SECOND)) - INTERVAL 1 MINUTE", -59 * SECOND),
        ("INTERVAL 1 SECOND + NOW()", SECOND),
        ("NOW() + INTERVAL -5 MINUTE", -300 * SECOND),
        ("NOW() + INTERVAL 1 DAY + INTERVAL 2 HOUR", 26 * 3600 * SECOND),
        ("TIMESTAMPADD(MINUTE, -5, NOW())", -300 * SECOND),
        ("TIMESTAMPADD(SQL_TSI_DAY, 2, CURRENT_TIMESTAMP)", 2 * 86400 * SECOND),
        ("ADDDATE(NOW(), 3)", 3 * 86400 * SECOND),
        ("SUBDATE(NOW(), INTERVAL 3 HOUR)", -3 * 3600 * SECOND),
        ("DATE_ADD(DATE_SUB(NOW(), INTERVAL 1 DAY), INTERVAL 1 HOUR)", -23 * 3600 * SECOND),
    ],
)
def test_moments(text, offset_ns):
    assert moment_ns(text.encode()) == NOW_NS + offset_ns


@pytest.mark.parametrize(
    "text",
    [
        "5", "NULL", "'NOW()'", "NOW", "NOW() + 5", "UNIX_TIMESTAMP() * 1000000000", "CURDATE()",
        "UNIX_TIMESTAMP(UTC_TIMESTAMP())", "UNIX_TIMESTAMP('2026-01-01')", "NOW() + INTERVAL a SECOND",
        "DATE_ADD(NOW(), 5)", "TIMESTAMPADD(MONTH, 1, NOW())", "INTERVAL 1 SECOND", "NOW() - NOW()",
        "(" * 100 + "NOW()" + ")" * 100, "NOW() + INTERVAL 1 MONTH",
        "NOW() + INTERVAL 1.5 MINUTE", "NOW() + INTERVAL '1:30' MINUTE", "NOW() + INTERVAL 'nan' SECOND",
        "NOW() + INTERVAL 1e999999 SECOND", "NOW() + INTERVAL 1 SECOND + 1", "DATE_ADD(x, INTERVAL 1 DAY)",
        "(NOW()", "NOW() + INTERVAL @x SECOND", "`NOW`()", "",
    ],
)  # fmt: skip
def test_everything_else_is_the_writers_affair(text):
    assert moment_ns(text.encode()) is None


def test_a_plan_with_anything_to_do_is_told_from_none():
    assert not any(NO_MOMENTS)
    assert any(MomentPlan(mixtures=(Mixture("time_next", "NOW"),)))


def test_time_columns_of_equal_tables_are_one_key():
    one, other = TimeColumns(frozenset({"a", "b"})), TimeColumns(frozenset({"b", "a"}))
    assert {one: 1}[other] == 1
    assert TimeColumns(frozenset({"a"}), frozenset({"t"})) != TimeColumns(frozenset({"a"}))
