import pytest

from streamfrom.proxy.merge.averages import Use, use_of
from tests.cases import cases


@pytest.mark.parametrize(
    ("expression", "use"),
    [
        ("A * 100", Use.ALL),
        ("O - A", Use.ALL),
        ("COALESCE(A, 0)", Use.ALL),
        ("ifnull( A ,  -1)", Use.ALL),
        ("ABS(A)", Use.ALL),
        ("ROUND(A, 2)", Use.ROUNDED),
        ("round(A)", Use.ROUNDED),
        ("CONCAT(ROUND(A, 1), '%')", Use.ROUNDED),
        ("ROUND(A, 2) / O * 7", Use.ROUNDED),
        ("CAST(A AS CHAR)", Use.SHOWN),
        ("CONCAT(A, ' EUR')", Use.SHOWN),
        ("IF(A > 2, 'yes', 'no')", Use.EITHER),
        ("ROUND(COALESCE(A, 0), 2)", Use.EITHER),
        ("ROUND(A / 3600, 3)", Use.EITHER),
        ("round(A / 60)", Use.EITHER),
        ("ROUND(A * 100, 1)", Use.EITHER),
        ("ROUND(10 * A, 2)", Use.EITHER),
        ("CASE WHEN A BETWEEN 1 AND 5 THEN 1 ELSE 0 END", Use.EITHER),
    ],
)
def test_what_one_step_makes_of_an_average_is_known(expression, use):
    assert use_of(marked(expression)) is use


def marked(expression):
    """Put the marks for the lone letters A and O."""
    words = expression.encode().replace(b"(", b"( ").replace(b",", b" ,").replace(b")", b" )")
    marks = {b"A": b"\0", b"O": b"\1"}
    return b" ".join(marks.get(word, word) for word in words.split(b" "))


@cases(expression=str)
def test_of_more_steps_only_some_servers_know_the_digits(expression):
    assert use_of(marked(expression)) is Use.UNKNOWN
