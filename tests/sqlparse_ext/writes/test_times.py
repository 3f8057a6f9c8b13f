"""How a moment may be written."""

import ast

from tests.cases import cases
from tests.sqlparse_ext.writes.test_moments import NOW_NS, sent


@cases(text=str.encode, offset_ns=ast.literal_eval)
def test_moments(text, offset_ns):
    assert sent(b"UPDATE m SET time_next = " + text) == (
        b"UPDATE m SET time_next = %d" % (NOW_NS + offset_ns)
    )
