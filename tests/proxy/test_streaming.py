import pytest

from engine.errors import ReceiverGone
from engine.types import ClaimedRow
from proxy import net
from proxy.errors import QueryInterrupted, ServerShutdown
from proxy.streaming import Stream
from proxy.wire.framing import frames
from tests.proxy.house import RecordingLink


def row(number, size=10):
    return ClaimedRow(b"%d" % number, "-", 0, 0, 1, bytes([number]) * size)


ROWS = [row(1), row(2), row(3)]


class Scene:
    """A stream and its client's link."""

    def __init__(self, sequence=4):
        self.link = RecordingLink()
        self.stream = Stream(
            self.link.link, shards=None, columns=("id", "message"), sequence=sequence
        )


@pytest.fixture
async def scene():
    return Scene()


async def test_a_batch_is_one_write_of_numbered_rows(scene):
    assert scene.stream.deliver(ROWS)
    assert scene.link.written == frames([r.payload for r in ROWS], 4)[0]
    assert scene.stream.sequence == 7


async def test_numbers_go_on_for_ever():
    scene = Scene(sequence=254)
    scene.stream.deliver(ROWS)
    assert scene.stream.sequence == 1


async def test_streams_are_told_apart():
    assert Scene().stream.id != Scene().stream.id


async def test_a_stream_wants_to_know_at_once_that_its_socket_is_full(scene):
    assert scene.link.high_water_bytes == 0
    scene.link.blocked = True
    assert not scene.stream.deliver(ROWS)


LARGE = [row(number, 40_000) for number in range(1, 6)]


async def test_rows_that_were_not_handed_to_the_socket_are_given_back(scene):
    scene.link.room_bytes = 90_000
    assert not scene.stream.deliver(LARGE)
    # Two and two; the second write was taken in part, which nobody can tell afterwards.
    assert scene.link.written == frames([r.payload for r in LARGE[:4]], 4)[0]
    assert [int(r.id) for r in scene.stream.close()] == [5]
    assert scene.link.high_water_bytes == net.WRITE_HIGH_WATER_BYTES


async def test_a_stream_goes_on_where_its_socket_was_full(scene):
    scene.link.room_bytes = 50_000
    assert not scene.stream.deliver(LARGE)
    scene.link.blocked, scene.link.room_bytes = False, 90_000
    assert not scene.stream.resume()
    scene.link.blocked, scene.link.room_bytes = False, 90_000
    assert scene.stream.resume()
    assert scene.link.written == frames([r.payload for r in LARGE], 4)[0]
    assert scene.stream.sequence == 9
    assert list(scene.stream.close()) == []


async def test_a_client_that_has_left_is_written_nothing(scene):
    scene.link.close()
    with pytest.raises(ReceiverGone):
        scene.stream.deliver(ROWS)
    assert list(scene.stream.close()) == []


async def test_a_stream_that_was_sent_nothing_has_nothing_to_give_back(scene):
    assert list(scene.stream.close()) == []


async def test_the_first_end_counts(scene):
    scene.stream.end(ServerShutdown())
    scene.stream.end(QueryInterrupted())
    assert isinstance(await scene.stream.ended, ServerShutdown)
