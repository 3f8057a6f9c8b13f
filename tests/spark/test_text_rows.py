"""Whatever is in a result, and however it is cut on its way, each column is what the server sent."""

import struct
from array import array
from itertools import accumulate

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from streamfrom.spark import text_rows
from streamfrom.spark.text_rows import MalformedRowsError, TextRows, find_packets


EOF = b"\xfe\x00\x00\x02\x00"
ERROR = b"\xff\x15\x05#HY000Query execution was interrupted"
VALUES = st.none() | st.binary(max_size=12) | st.integers(0, 70_000).map(lambda n: b"x" * n)
COUNTS = st.integers(1, 5)


def value(data):
    if data is None:
        return b"\xfb"
    size = len(data)
    if size < 251:
        return bytes([size]) + data
    for first, width in ((b"\xfc", 2), (b"\xfd", 3)):
        if size < 1 << 8 * width:
            return first + size.to_bytes(width, "little") + data
    return b"\xfe" + struct.pack("<Q", size) + data


def packets(payloads, first=0):
    longest, parts = 0xFFFFFF, list[bytes]()
    for payload in payloads:
        left = payload
        while True:
            part, left = left[:longest], left[longest:]
            parts.append(
                len(part).to_bytes(3, "little") + bytes([(first + len(parts)) % 256]) + part
            )
            if len(part) < longest:
                break
    return b"".join(parts)


def result(rows, last=EOF):
    return packets([b"".join(map(value, row)) for row in rows] + [last])


def read(sent, columns, *, pieces=65_536, take_at=1, room_bytes=64):
    """Return the rows of *sent*, which comes in *pieces* and is taken as soon as there are *take_at* bytes."""
    rows = TextRows(columns, room_bytes)
    found = []
    place = 0
    has_ended = False
    while not has_ended:
        size = put(rows, sent[place : place + pieces])
        assert size, "it waits for more than was sent"
        place += size
        has_ended = rows.received(size)
        if rows.bytes_held >= take_at or has_ended:
            taken = [column.to_pylist() for column in rows.take()]
            found += list(zip(*taken, strict=True))
    assert place == len(sent)
    return found, rows


def put(rows, data):
    room = rows.room()
    size = min(len(room), len(data))
    room[:size] = data[:size]
    return size


@given(st.data(), COUNTS, st.integers(1, 4000), st.integers(1, 900))
def test_rows_come_as_they_were_sent_however_they_are_cut(data, columns, pieces, take_at):
    rows = data.draw(st.lists(st.tuples(*[VALUES] * columns), max_size=12))
    sent = result(rows)
    found, _ = read(sent, columns, pieces=max(pieces, len(sent) // 500), take_at=take_at)
    assert found == rows


def test_a_row_longer_than_a_packet_is_one_row():
    huge = b"\xfe" * (0xFFFFFF + 5)
    # With its length the row fills a packet, so an empty one follows.
    exact = b"\xff" * (0xFFFFFF - 4)
    rows = [(b"1", None), (b"2", huge), (b"", exact), (b"4", b"")]
    found, reader = read(result(rows), 2, pieces=1 << 22, room_bytes=1 << 20)
    assert found == rows
    assert reader.error is None


def test_a_first_value_of_16_mib_is_no_end():
    first_packet = result([(b"x" * 0x1000000,)])[: 4 + 0xFFFFFF]
    reader = TextRows(1, len(first_packet))
    assert put(reader, first_packet) == len(first_packet)
    assert not reader.received(len(first_packet))


def test_a_value_that_begins_like_an_end_is_a_value():
    rows = [(b"",), (b"\xfe",), (b"\xff",), (None,)]
    assert read(result(rows), 1)[0] == rows


def test_an_error_comes_after_the_rows_before_it():
    found, reader = read(
        result([(b"1",), (b"2",)], ERROR), 1, pieces=1 << 16, room_bytes=1 << 16
    )
    assert found == [(b"1",), (b"2",)]
    assert reader.error == ERROR


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("row", [(b"a", b"b"), (None, b"x" * 300)])
def test_a_row_of_another_width_is_no_row(columns, row):
    with pytest.raises(MalformedRowsError, match="other columns"):
        read(result([row]), columns)


def test_memory_is_what_was_not_taken():
    rows = TextRows(1, 1 << 16)
    sent = packets([value(b"x" * 100)] * 100_000)
    place = 0
    while place < len(sent):
        size = put(rows, sent[place : place + 50_000])
        place += size
        assert not rows.received(size)
        rows.take()
        assert rows.bytes_held < 200
    assert rows.bytes_held + len(rows.room()) == 1 << 16


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.floats(allow_nan=False, allow_infinity=False),
            st.none() | st.decimals(-(10**9), 10**9, places=4),
            VALUES,
        ),
        min_size=1,
        max_size=40,
    )
)
def test_numbers_are_read_where_they_came(rows):
    texts = [
        (*(None if value is None else str(value).encode() for value in row[:3]), row[3])
        for row in rows
    ]
    reader = TextRows(4, 1 << 20)
    assert feed(reader, result(texts))
    columns = reader.take([pa.int64(), pa.float64(), pa.decimal128(20, 4), None])
    assert list(zip(*(column.to_pylist() for column in columns), strict=True)) == rows
    for column in columns:
        column.validate(full=True)


def test_no_row_at_all_has_the_types_that_are_asked_for():
    reader = TextRows(2)
    assert feed(reader, result([]))
    assert [column.type for column in reader.take([pa.int64(), None])] == [
        pa.int64(),
        pa.binary(),
    ]


def test_a_text_that_is_no_number_is_told():
    reader = TextRows(1)
    feed(reader, result([(b"12",), (b"1x",)]))
    with pytest.raises(pa.ArrowInvalid, match="1x"):
        reader.take([pa.int64()])


@pytest.mark.parametrize("length", [2**64 - 1, 2**63, 2**62, 70_000])
def test_a_length_that_leads_out_of_its_row_is_no_row(length):
    reader = TextRows(2)
    feed(reader, packets([b"\xfe" + struct.pack("<Q", length) + b"x" * 40, EOF]))
    with pytest.raises(MalformedRowsError, match="other columns"):
        reader.take()


def feed(reader, sent):
    place = 0
    has_ended = False
    while place < len(sent):
        size = put(reader, sent[place:])
        place += size
        has_ended = reader.received(size)
    return has_ended


@given(
    st.lists(st.integers(0, 400), max_size=300), st.integers(0, 500), st.sampled_from([0, 77])
)
def test_packets_are_found_and_the_last_one_if_it_is_whole(sizes, missing, before):
    data = packets([b"x" * size for size in sizes])
    data = b"?" * before + data[: max(0, len(data) - missing)]
    places = accumulate((text_rows.HEADER_BYTES + size for size in sizes), initial=before)
    whole = [place for place in places if place <= len(data)]
    starts = array("q")
    place = find_packets(starts, bytearray(data), before, len(data))
    assert [*starts, place] == whole
