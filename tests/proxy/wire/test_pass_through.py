import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.constants import Status
from streamfrom.proxy.wire.framing import frame, frames
from streamfrom.proxy.wire.pass_through import PassThrough
from streamfrom.proxy.wire.resequencer import Resequencer
from streamfrom.proxy.wire.resultset import (
    column_count,
    ok_packet,
    text_row,
)
from streamfrom.proxy.wire.row_collector import RowCollector
from tests.proxy.wire.streams import (
    BACKEND,
    DEFINITION,
    MODERN,
    MODERN_WITHOUT_TRACK,
    MORE,
    ONE,
    Done,
    Failed,
    Rows,
    answers,
    backend_payloads,
    backend_stream,
    client_payloads,
    cut,
    error_of,
    ok_of,
    places,
    result_sets,
)


@given(
    parts=answers(),
    places=places,
    capabilities=st.sampled_from([MODERN, MODERN_WITHOUT_TRACK]),
    keeps=st.booleans(),
)
def test_any_cut_of_the_stream_forwards_the_same_bytes(parts, places, capabilities, keeps):
    expected = client_payloads(parts, capabilities, keeps_state=keeps)
    relay = PassThrough(capabilities, shown=bytes if keeps else None)
    out = b"".join(relay.feed(piece) for piece in cut(backend_stream(parts), places))
    assert out == frames(expected, 1)[0]
    assert relay.done
    assert relay.rows == sum(len(part.rows) for part in parts if isinstance(part, Rows))
    assert not relay.status & MORE, "the backend itself announced nothing more"
    ends = [part.end if isinstance(part, Rows) else part for part in parts]
    changes = [tracker for end in ends if isinstance(end, Done) for tracker in end.trackers]
    assert relay.trackers == tuple(changes)
    last = ends[-1]
    if isinstance(last, Failed):
        assert (relay.ok, relay.status) == (None, 0)
        assert error_of(relay).code == last.code
        assert error_of(relay).message == last.text.encode()
    else:
        assert relay.error is None
        assert relay.status & ~Status.SESSION_STATE_CHANGED == last.status
        ok = ok_of(relay)
        assert (ok.affected_rows, ok.last_insert_id) == (
            last.affected_rows,
            last.last_insert_id,
        )
        assert ok.info == last.info


def test_a_row_of_sixteen_mib_passes_every_reader():
    row = b"\xfe" + (1 << 24).to_bytes(8, "little") + b"\xfe" * (1 << 24)
    end = ok_packet(status=2, capabilities=BACKEND, header=0xFE)
    stream = frames([column_count(1), DEFINITION, row, end], 1)[0]
    step = 256 << 10
    pieces = [stream[at : at + step] for at in range(0, len(stream), step)]
    for relay in (PassThrough(MODERN), Resequencer(MODERN)):
        assert b"".join(map(relay.feed, pieces)) == stream
        assert (relay.done, relay.rows) == (True, 1)
    collector = RowCollector()
    assert [found for piece in pieces for found in collector.feed(piece)] == [row]
    assert collector.done


def test_an_error_among_the_columns_is_passed_on():
    stream = frames([column_count(2), DEFINITION, Failed().packet()], 1)[0]
    for relay in (PassThrough(MODERN), Resequencer(MODERN)):
        assert relay.feed(stream) == stream
        assert error_of(relay).code == Failed().code


def test_a_server_that_goes_on_while_it_waits_for_a_file_speaks_out_of_turn():
    with pytest.raises(WireError, match="out of turn"):
        PassThrough(MODERN, allows_local_infile=True).feed(frames([b"\xfbf.csv", b"\0"], 1)[0])


def test_the_usual_chunk_comes_back_itself():
    stream = backend_stream([ONE])
    assert PassThrough(MODERN_WITHOUT_TRACK).feed(stream) is stream
    rows = frames([text_row([b"1"])] * 10, 3)[0]
    relay = PassThrough(MODERN)
    relay.feed(frames([column_count(1), DEFINITION], 1)[0])
    assert relay.feed(rows) is rows


def test_a_file_is_asked_for_only_when_the_statement_allows_it():
    request = frame(b"\xfb/etc/passwd", 1)
    relay = PassThrough(MODERN, allows_local_infile=True)
    assert relay.feed(request) == request
    asked_for = relay.wants_local_infile
    assert asked_for == b"/etc/passwd"
    assert relay.next_sequence == relay.infile_sequence == 2
    answer = frame(ok_packet(7, status=2, capabilities=BACKEND), 4)
    assert relay.feed(answer) == answer
    assert relay.wants_local_infile is None
    assert ok_of(relay).affected_rows == 7
    with pytest.raises(WireError):
        PassThrough(MODERN).feed(request)


@given(part=result_sets(), data=st.data())
def test_a_damaged_answer_raises_nothing_but_wire_errors(part, data):
    stream = bytearray(frames(backend_payloads([part]), 1)[0])
    for _ in range(data.draw(st.integers(1, 4))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    relay = PassThrough(MODERN, shown=bytes)
    try:
        relay.feed(bytes(stream))
        _ = relay.ok, relay.trackers
    except WireError:
        pass


@given(parts=answers(), end=st.integers(0, 1 << 16))
def test_what_may_follow_is_known_wherever_a_server_breaks_off(parts, end):
    stream = backend_stream(parts)
    relay = PassThrough(MODERN)
    out = relay.feed(stream[: end % (len(stream) + 1)])
    at = count = 0
    while at < len(out):
        at += 4 + int.from_bytes(out[at : at + 3], "little")
        count += 1
    assert relay.is_mid_packet == (at > len(out))
    if not relay.is_mid_packet:
        assert relay.next_sequence == (1 + count) % 256
