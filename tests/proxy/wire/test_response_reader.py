import pytest

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.constants import PROXY_OFFER
from streamfrom.proxy.wire.response_reader import (
    COLUMNS,
    FIRST,
    ROWS,
    AnswerKind,
    ResponseReader,
)
from streamfrom.proxy.wire.resultset import ok_packet


OK = ok_packet(1, 2, status=2, capabilities=PROXY_OFFER)
EOF = ok_packet(status=2, capabilities=PROXY_OFFER, header=0xFE)


class Reader(ResponseReader):
    """A reader in the middle of an answer, as its subclasses use it."""

    def __init__(self, state=FIRST, *, answer=AnswerKind.RESULT, allows_local_infile=True):
        super().__init__(answer)
        self._allows_local_infile = allows_local_infile
        if answer is AnswerKind.RESULT:
            self._state = state

    def take(self, payload):
        """Return the state that *payload* leads to, which is no row."""
        return self._special(payload)


@pytest.mark.parametrize(
    ("state", "payload"),
    [
        (COLUMNS, EOF),
        (ROWS, OK),
        (FIRST, b"\xfc\x01"),
        (FIRST, b"\x01\x01"),
        (FIRST, b"\x00\x00\x00\x02"),
    ],
)
def test_a_packet_in_the_wrong_place_is_refused(state, payload):
    with pytest.raises(WireError):
        Reader(state).take(payload)
