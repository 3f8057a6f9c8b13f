import pytest

from streamfrom.engine.errors import ReceiverGone
from streamfrom.engine.messaging.table.message import ClaimedRow
from streamfrom.proxy import net
from streamfrom.proxy.sql.queues.stream_statements import MessageStream
from streamfrom.proxy.wire.framing import frames
from tests.proxy.rigs import RecordingLink


def row(number, size=10):
    return ClaimedRow(b"%d" % number, "-", 0, 0, 1, bytes([number]) * size)


ROWS = [row(1), row(2), row(3)]
LARGE = [row(number, 100_000) for number in (1, 2, 3)]


class NarrowLink(RecordingLink):
    """A socket that is full after every write."""

    def write(self, data):
        super().write(data)
        self.blocked = True


class Scene:
    """A stream and its client's link."""

    def __init__(self, link=None, sequence=4, rows_max=None):
        self.link = link or RecordingLink()
        self.stream = MessageStream(
            self.link.link,
            shards=None,
            columns=("id", "message"),
            sequence=sequence,
            rows_max=rows_max,
        )

    @property
    def rows_written(self):
        at = count = 0
        while at < len(self.link.written):
            at += 4 + int.from_bytes(self.link.written[at : at + 3], "little")
            count += 1
        return count


@pytest.fixture
async def scene():
    return Scene()


@pytest.fixture
async def narrow():
    return Scene(NarrowLink())


async def test_the_last_rows_of_a_limit_leave_with_the_end():
    scene = Scene(rows_max=3)
    assert scene.stream.deliver(ROWS[:2])
    assert scene.rows_written == 2
    assert scene.stream.deliver(ROWS[2:])
    assert scene.rows_written == 2
    scene.link.write(b"")
    assert scene.rows_written == 3


async def test_large_rows_go_out_as_the_socket_takes_them(narrow):
    assert not narrow.stream.deliver(LARGE)
    assert narrow.rows_written == 1
    assert not narrow.stream.resume()
    assert narrow.rows_written == 1
    for count in (2, 3):
        narrow.link.blocked = False
        assert not narrow.stream.resume()
        assert narrow.rows_written == count
    narrow.link.blocked = False
    assert narrow.stream.resume()
    assert narrow.link.written == frames([r.payload for r in LARGE], 4)[0]


async def test_only_rows_that_the_socket_does_not_have_are_given_back(scene, narrow):
    narrow.stream.deliver(LARGE)
    assert list(narrow.stream.close()) == LARGE[1:]
    assert narrow.link.high_water_bytes == net.WRITE_HIGH_WATER_BYTES
    scene.stream.deliver(ROWS)
    assert list(scene.stream.close()) == []
    assert list(Scene().stream.close()) == []


async def test_a_client_that_has_left_takes_nothing(scene):
    scene.link.close()
    with pytest.raises(ReceiverGone):
        scene.stream.deliver(ROWS)
    assert list(scene.stream.close()) == []


async def test_a_client_that_leaves_while_it_is_written_to_gives_the_rest_back(scene):
    scene.link.room_bytes = 50_000
    scene.stream.deliver(LARGE)
    scene.link.blocked = False
    scene.link.close()
    assert not scene.stream.resume()
    assert [int(r.id) for r in scene.stream.close()] == [2, 3]
