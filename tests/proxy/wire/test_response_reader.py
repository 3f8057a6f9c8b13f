import pytest

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.constants import FRAME_BYTES_MAX, PROXY_OFFER, Status
from streamfrom.proxy.wire.response_reader import (
    COLUMNS,
    DONE,
    FIRST,
    INFILE,
    ROWS,
    AnswerKind,
    ResponseReader,
    whole,
)
from streamfrom.proxy.wire.resultset import Tracker, err_packet, ok_packet
from tests.proxy.wire.peers import encode_trackers


OK = ok_packet(1, 2, status=2, capabilities=PROXY_OFFER)
EOF = ok_packet(status=2, capabilities=PROXY_OFFER, header=0xFE)
MORE = ok_packet(status=2 | Status.MORE_RESULTS_EXISTS, capabilities=PROXY_OFFER)
ERR = err_packet(1064, "42000", "no", PROXY_OFFER)


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
    ("state", "payload", "following"),
    [
        (FIRST, OK, DONE),
        (FIRST, EOF, DONE),
        (FIRST, MORE, FIRST),
        (FIRST, ERR, DONE),
        (FIRST, b"\xfbname", INFILE),
        (FIRST, b"\x02", COLUMNS),
        (FIRST, b"\xfc\x2c\x01", COLUMNS),
        (COLUMNS, ERR, DONE),
        (ROWS, EOF, DONE),
        (ROWS, ERR, DONE),
    ],
)
def test_what_a_packet_means_depends_on_the_place(state, payload, following):
    assert Reader(state).take(payload) == following


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


def test_bare_text_ends_at_once():
    statistics = Reader(answer=AnswerKind.TEXT)
    assert statistics.take(b"Uptime: 5") == DONE
    assert statistics.ok is None


def test_a_file_is_refused_unless_it_was_offered():
    with pytest.raises(WireError):
        Reader(allows_local_infile=False).take(b"\xfb/etc/passwd")


def test_status_is_read_whatever_the_size_of_the_counters():
    for rows in (0, 250, 251, 1 << 40):
        made = Reader()
        made.take(ok_packet(rows, rows, status=0x23, capabilities=PROXY_OFFER))
        assert made.status == 0x23
        assert made.ok is not None
        assert made.ok.affected_rows == rows


def test_trackers_of_all_results_are_kept():
    made = Reader()
    for name in ("a", "b"):
        state = encode_trackers([Tracker(1, "", name)])
        made.take(
            ok_packet(status=8, capabilities=PROXY_OFFER, session_state=state),
        )
    assert made.trackers == (Tracker(1, "", "a"), Tracker(1, "", "b"))


def test_an_error_takes_the_place_of_an_earlier_ok():
    made = Reader()
    made.take(MORE)
    made.take(ERR)
    assert made.ok is None
    assert made.status == 0
    assert made.error is not None
    assert made.error.code == 1064


@pytest.mark.parametrize("size", [0, FRAME_BYTES_MAX])
def test_only_rows_have_odd_sizes(size):
    with pytest.raises(WireError):
        whole(size)
