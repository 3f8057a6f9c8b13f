from streamfrom.engine.errors import StoreError
from streamfrom.engine.fleet.link_elsewhere import EndingStream
from streamfrom.engine.messaging.table.message import PeerRow
from tests.engine.fleet.members import Client


def rows(*payloads):
    return [PeerRow(payload, 1) for payload in payloads]


class Stream:
    """One with a limit, and what became of it."""

    def __init__(self, rows_max, client=None):
        self.client = client or Client(rows_max=rows_max)
        self.firsts = 0
        self.others = False
        self.ending = EndingStream(self.client, rows_max, self._first, lambda: self.others)

    def _first(self):
        self.firsts += 1


async def test_it_ends_with_its_last_row_and_keeps_what_is_too_much():
    stream = Stream(2)
    assert stream.ending.deliver(rows(b"1"))
    assert not stream.client.is_finished
    assert stream.ending.rows_max == 1, "what another dispatcher is asked for"
    stream.ending.deliver(rows(b"2", b"3"))
    stream.ending.deliver(rows(b"4"))
    assert stream.client.payloads == [b"1", b"2"]
    assert stream.ending.surplus == rows(b"3", b"4")
    assert stream.client.is_finished
    assert stream.firsts == 1


async def test_it_ends_once_the_socket_has_taken_everything():
    stream = Stream(1, Client(rows_max=1, room=1))
    assert not stream.ending.deliver(rows(b"1"))
    assert not stream.client.is_finished
    stream.ending.ready()
    assert stream.client.is_finished


async def test_after_its_end_no_error_comes():
    stream = Stream(1)
    stream.ending.deliver(rows(b"1"))
    stream.ending.end(StoreError("late"))
    assert not stream.client.ended
    other = Stream(1)
    other.ending.end(StoreError("lost"))
    other.ending.deliver(rows(b"1"))
    assert other.client.ended
    assert not other.client.is_finished
