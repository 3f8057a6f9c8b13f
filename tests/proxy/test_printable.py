import pytest

from streamfrom.proxy.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("очередь 队列 é", "очередь 队列 é"),
        ("q\nok  all is well", r"q\nok  all is well"),
        ("\x1b[31m\r\x00", r"\x1b[31m\r\x00"),
        ("a\u202eb\u2028", r"a\u202eb\u2028"),
        ("\udcff", r"\udcff"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text, shown):
    assert printable(text) == shown
