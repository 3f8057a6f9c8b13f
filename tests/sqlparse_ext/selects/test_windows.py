import pytest

from streamfrom.sqlparse_ext.selects.windows import read_windows
from streamfrom.sqlparse_ext.text.tokens import statement_tokens


def windows(sql):
    tokens = statement_tokens(sql.encode())
    found = read_windows(tokens, sql.encode(), 0, len(tokens))
    if found is None:
        return None
    calls, partitions = found
    texts = [
        [sql[tokens[first].start : tokens[end - 1].end] for first, end in partition]
        for partition in partitions
    ]
    return set(calls), texts


@pytest.mark.parametrize(
    ("sql", "calls", "partitions"),
    [
        ("SUM(a) OVER (PARTITION BY id)", set(), [["id"]]),
        ("RANK() OVER (PARTITION BY f(a, b), t.id ORDER BY c)", {"RANK", "F"}, [["f(a, b)", "t.id"]]),
        (
            "LAG(a) OVER (PARTITION BY x) + COUNT(*) OVER (PARTITION BY y ROWS 1 PRECEDING)",
            {"LAG"},
            [["x"], ["y"]],
        ),
    ],
)  # fmt: skip
def test_a_window_is_read_by_its_partitions(sql, calls, partitions):
    assert windows(sql) == (calls, partitions)


@pytest.mark.parametrize(
    "sql",
    [
        "SUM(a) OVER ()",
        "SUM(a) OVER w",
        "RANK() OVER (ORDER BY a)",
        "SUM(COUNT(*)) OVER (PARTITION BY a)",
        "SUM(a) OVER (PARTITION BY a) + MAX(a)",
    ],
)
def test_other_forms_are_not_read(sql):
    assert windows(sql) is None
