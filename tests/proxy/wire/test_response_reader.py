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


def reader(state=FIRST, *, answer=AnswerKind.RESULT):
    made = ResponseReader(answer)
    made._allows_local_infile = True
    if answer is AnswerKind.RESULT:
        made._state = state
    return made


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
    assert reader(state)._special(payload) == following


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
        reader(state)._special(payload)


def test_bare_text_ends_at_once():
    statistics = reader(answer=AnswerKind.TEXT)
    assert statistics._special(b"Uptime: 5") == DONE
    assert statistics.ok is None


def test_a_file_is_refused_unless_it_was_offered():
    with pytest.raises(WireError):
        ResponseReader(AnswerKind.RESULT)._special(b"\xfb/etc/passwd")


def test_status_is_read_whatever_the_size_of_the_counters():
    for rows in (0, 250, 251, 1 << 40):
        made = reader()
        made._special(ok_packet(rows, rows, status=0x23, capabilities=PROXY_OFFER))
        assert made.status == 0x23
        assert made.ok.affected_rows == rows


def test_trackers_of_all_results_are_kept():
    made = reader()
    for name in ("a", "b"):
        state = encode_trackers([Tracker(1, "", name)])
        made._special(
            ok_packet(status=8, capabilities=PROXY_OFFER, session_state=state),
        )
    assert made.trackers == (Tracker(1, "", "a"), Tracker(1, "", "b"))


def test_an_error_takes_the_place_of_an_earlier_ok():
    made = reader()
    made._special(MORE)
    made._special(ERR)
    assert made.ok is None
    assert made.status == 0
    assert made.error.code == 1064


@pytest.mark.parametrize("size", [0, FRAME_BYTES_MAX])
def test_only_rows_have_odd_sizes(size):
    with pytest.raises(WireError):
        whole(size)
