"""Reading takes what it takes, whatever the text is."""

from contextlib import suppress

from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.writes.completion import complete
from tests.cases import cases
from tests.loop_calls import calls_counted
from tests.sqlparse_ext.facts import statement
from tests.sqlparse_ext.writes.test_moments import FACTS, NOW_NS, sent


PIECES = ["time_next", "NOW()", "(", ")", ",", "<", "=", "AND", "BETWEEN", "CASE", "WHEN", "THEN", "END",
          "5", "'x'", "+", "*", "INTERVAL 1 DAY", "UNIX_TIMESTAMP(", "SELECT", "FROM", "IN", "m", "IF("]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_no_text_breaks_it_and_completing_again_changes_nothing(pieces):
    sql = ("SELECT * FROM m WHERE " + " ".join(pieces)).encode()
    try:
        once = sent(sql)
    except Unsupported:
        return
    assert sent(once) == once


@cases(unit=str.encode)
def test_the_work_grows_with_the_text_and_not_faster(unit):
    def calls(count):
        sql = b"SELECT * FROM m WHERE time_next IN (" + unit * count + b"1)"
        found = statement(sql)
        with calls_counted() as counts, suppress(Unsupported):
            complete(found, None, NOW_NS, FACTS.times)
        return sum(counts.values())

    # Ten times the text; a quadratic reader makes a hundred times as many calls.
    assert calls(400) < 15 * calls(40)
