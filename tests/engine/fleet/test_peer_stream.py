from streamfrom.engine.fleet.peer_link import (
    CloseStream,
    OpenStream,
    RowsSent,
    RowsTaken,
)
from streamfrom.engine.fleet.peer_stream import WINDOW_BYTES, RemoteReceiver, StreamElsewhere
from streamfrom.engine.messaging.table.message import ClaimedRow, PeerRow


OPEN = OpenStream(7, "ks", "msg", ("0",), ("id",), 3, None, 42)
HALF = bytes(WINDOW_BYTES // 2)


def claimed(ident, payload=b"x", types=b""):
    return ClaimedRow(b"%d" % ident, "0", 0, 0, 1, payload, types=types)


def held_by(_receiver):
    return {"0": (b"1", b"2")}


def test_the_dispatcher_sends_payloads_under_no_clients_number_and_keeps_rows_to_give_back():
    sent: list[object] = []
    receiver = RemoteReceiver(OPEN, sent.append, held_by)
    assert receiver.deliver([claimed(1, b"a"), claimed(2, b"b")])
    assert sent == [RowsSent(7, 0, ()), RowsSent(7, 0, (b"a", b"b"))]
    assert receiver.away.unsent(1) == (claimed(2, b"b"),)
    assert (receiver.shards, receiver.prefetch) == (frozenset({"0"}), 3)
    assert RemoteReceiver(OPEN, lambda _: None, held_by).id < 0


def test_the_types_of_rows_cross_with_them_also_where_they_change_within_a_batch():
    sent: list[object] = []
    receiver = RemoteReceiver(OPEN, sent.append, held_by)
    receiver.deliver([claimed(1, b"a", b"i"), claimed(2, b"b", b"i"), claimed(3, b"c", b"t")])
    first = RowsSent(7, 0, (b"a", b"b"), b"i")
    assert sent[1:] == [first, RowsSent(7, 2, (b"c",), b"t")]
    stream = StreamElsewhere(7, frozenset({"0"}))
    assert stream.receive(first) == [PeerRow(b"a", 7, b"i"), PeerRow(b"b", 7, b"i")]


def test_the_other_end_reports_what_was_taken_and_closes_with_what_was_not():
    stream = StreamElsewhere(7, frozenset({"0"}))
    rows = stream.receive(RowsSent(7, 0, (HALF, b"a", b"b", b"c")))
    assert rows[1] == PeerRow(b"a", 7)
    assert stream.taken() == RowsTaken(7, 4)
    assert stream.taken() is None
    stream.receive(RowsSent(7, 4, (b"d",)))
    stream.refused(1)
    unsent = [claimed(1), PeerRow(b"c", 7), PeerRow(b"c", 8)]
    assert stream.closed(unsent) == CloseStream(7, 3)
