import contextlib
import tracemalloc

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import OutOfOrder, PacketTooLarge
from streamfrom.proxy.wire.constants import FRAME_BYTES_MAX
from streamfrom.proxy.wire.framing import Framer, frame, frame_parts, frames
from tests.proxy.wire.streams import cut, places, small_frames


def read(framer, pieces):
    payloads = []
    for piece in pieces:
        framer.feed(piece)
        while (payload := framer.next_packet()) is not None:
            payloads.append(payload)
    return payloads


@given(payloads=st.lists(st.binary(max_size=60)), places=places, start=st.integers(0, 255))
def test_any_cut_of_the_stream_gives_the_same_packets(payloads, places, start):
    with small_frames(16):
        stream, following = frames(payloads, start)
        framer, in_one_step = Framer(1 << 20), Framer(1 << 20)
        framer.next_sequence = in_one_step.next_sequence = start
        assert read(framer, cut(stream, places)) == payloads
        used = sum(len(each) // 16 + 1 for each in payloads)
        assert framer.next_sequence == following == (start + used) % 256
        assert framer.take_rest() == b""
        found = []
        for piece in cut(stream, places):
            payload = in_one_step.feed_next(piece)
            while payload is not None:
                found.append(payload)
                payload = in_one_step.next_packet()
        assert found == payloads


@given(parts=st.lists(st.binary(max_size=40), max_size=5))
def test_a_payload_in_parts_is_framed_as_the_whole_one(parts):
    with small_frames(16):
        assert frame_parts(parts, 254) == frames([b"".join(parts)], 254)[0]
        framer = Framer(1 << 20)
        framer.next_sequence = 254
        assert read(framer, [frame_parts(parts, 254)]) == [b"".join(parts)]


def test_size_is_judged_by_headers_alone_and_counted_over_all_frames_of_a_payload():
    framer = Framer(100)
    framer.feed(frame(b"x" * 101, 0)[:4])
    with pytest.raises(PacketTooLarge):
        framer.next_packet()
    assert read(Framer(100), [frame(b"x" * 100, 0)]) == [b"x" * 100]
    with small_frames(16):
        framer = Framer(40)
        framer.feed(frame(b"x" * 41, 0)[: 20 + 20 + 4])
        with pytest.raises(PacketTooLarge):
            framer.next_packet()


@given(data=st.binary(max_size=60), places=places)
def test_noise_gives_packets_or_wire_errors(data, places):
    framer = Framer(32)
    with contextlib.suppress(OutOfOrder, PacketTooLarge):
        read(framer, cut(data, places))


@pytest.mark.parametrize(
    ("size", "piece"),
    [
        (FRAME_BYTES_MAX - 5, 256 << 10),
        (FRAME_BYTES_MAX + 5, 256 << 10),
        (FRAME_BYTES_MAX + 5, FRAME_BYTES_MAX + 4),  # a full frame comes in one piece
    ],
)
def test_a_large_payload_that_is_whole_is_not_copied_again(size, piece):
    """Three copies of 16 MB held everybody up for 14 ms."""
    data = frame(bytes(size), 0)
    framer = Framer(1 << 25)
    tracemalloc.start()
    try:
        pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
        tracemalloc.reset_peak()
        before_bytes, _ = tracemalloc.get_traced_memory()
        *unfinished, payload = map(framer.feed_next, pieces)
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (set(unfinished), payload) == ({None}, bytes(size))
    # BytesIO takes an eighth more than it needs while it grows.
    assert most_bytes - before_bytes < 1.25 * size
