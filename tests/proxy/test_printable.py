from streamfrom.proxy.printable import printable
from tests.cases import cases


@cases(text=str, shown=str)
def test_what_a_terminal_would_obey_is_escaped(text, shown):
    assert printable(text) == shown
