import contextlib

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.constants import PROXY_OFFER
from streamfrom.proxy.wire.framing import frames
from streamfrom.proxy.wire.pass_through import PassThrough
from streamfrom.proxy.wire.resequencer import Resequencer
from streamfrom.proxy.wire.response_reader import (
    COLUMNS,
    FIRST,
    ROWS,
    ResponseReader,
)
from streamfrom.proxy.wire.resultset import (
    ColumnDefinition,
    column_count,
    column_definition,
    eof_packet,
    ok_packet,
    text_row,
)
from streamfrom.proxy.wire.row_collector import RowCollector
from tests.proxy.wire.streams import BACKEND, MODERN, OLD, cut, places, small_frames


OK = ok_packet(1, 2, status=2, capabilities=PROXY_OFFER)
EOF = ok_packet(status=2, capabilities=PROXY_OFFER, header=0xFE)


class Reader(ResponseReader):
    """A reader in the middle of an answer, as its subclasses use it."""

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
        Reader(allows_local_infile=True, _state=state).take(payload)


TWO_ROWS = [text_row([b"1"]), text_row([b"2"])]
READERS = [
    lambda: PassThrough(MODERN, allows_local_infile=True),
    lambda: Resequencer(OLD, allows_local_infile=True),
    RowCollector,
]


@pytest.mark.parametrize("make", READERS)
def test_all_readers_find_the_same_end_and_read_nothing_behind_it(make):
    end = ok_packet(status=2, capabilities=BACKEND, header=0xFE)
    head = [column_count(1), column_definition(ColumnDefinition("a"))]
    answer, _ = frames([*head, *TWO_ROWS, end], 1)
    reader = make()
    reader.feed(answer[:-1])
    assert not reader.done
    reader.feed(answer[-1:] + b"next")
    assert reader.done
    assert (reader.rows, reader.status, reader.rest) == (2, 2, b"next")
    with pytest.raises(WireError):
        reader.feed(b"more")


@pytest.mark.parametrize("make", READERS)
@given(data=st.binary(max_size=120))
def test_noise_raises_nothing_but_wire_errors(make, data):
    reader = make()
    with contextlib.suppress(WireError):
        reader.feed(data)
        _ = reader.ok, reader.trackers


@given(rows=st.lists(st.binary(min_size=1, max_size=400), max_size=5), places=places)
def test_continuations_of_long_rows_are_never_taken_for_the_end(rows, places):
    # Values begin with every byte there is; frames of 64 bytes stand in for 16 MiB.
    with small_frames(64):
        packets = [text_row([row]) for row in rows]
        head = [column_count(1), column_definition(ColumnDefinition("id"))]
        end = ok_packet(status=2, capabilities=BACKEND, header=0xFE)
        stream, _ = frames([*head, *packets, end], 1)
        pieces = cut(stream, places)
        relay, old, collector = PassThrough(MODERN), Resequencer(OLD), RowCollector()
        assert b"".join(map(relay.feed, pieces)) == stream
        out = b"".join(map(old.feed, pieces)), old.next_sequence
        assert out == frames([*head, eof_packet(2), *packets, eof_packet(2)], 1)
        assert [row for piece in pieces for row in collector.feed(piece)] == packets
        for reader in (relay, old, collector):
            assert (reader.done, reader.rows) == (True, len(rows))
