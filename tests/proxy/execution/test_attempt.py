from typing import Any

import pytest

from streamfrom.proxy.backends.session_variables import names
from streamfrom.proxy.execution.attempt import Attempt
from streamfrom.proxy.execution.reply import Reply
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.proxy.wire.framing import frames
from streamfrom.proxy.wire.pass_through import PassThrough
from streamfrom.proxy.wire.resequencer import Resequencer
from streamfrom.proxy.wire.response_reader import DEPRECATE_EOF
from streamfrom.proxy.wire.resultset import ColumnDefinition
from tests.proxy.fake_client import MODERN
from tests.proxy.rigs import RecordingLink
from tests.proxy.wire.peers import text_resultset
from tests.sqlparse_ext.facts import shape


ANSWER = text_resultset(
    [ColumnDefinition("a")],
    [(b"row %d" % i,) for i in range(20)],
    capabilities=MODERN,
    status=2,
)


class Server:
    """A backend, as far as its link can be paused."""

    def __init__(self):
        self.link = RecordingLink()
        self.on_writable: Any = None


def attempt_on(server, client, scanner):
    """Return an attempt whose answer comes from *server*."""
    reply = Reply(client.link, SessionState(MODERN, names("utf8mb4", "utf8mb4_general_ci")), 1)
    shard: Any = None
    attempt: Any = Attempt(shard, "db", b"", shape("SELECT a FROM t"), reply)
    attempt.backend, attempt.scanner = server, scanner
    return attempt


class Scene:
    """One answer on its way."""

    def __init__(self, capabilities=MODERN):
        self.client = RecordingLink()
        self.server = Server()
        self.done: list[Attempt] = []
        reader = PassThrough if capabilities & DEPRECATE_EOF else Resequencer
        self.attempt = attempt_on(self.server, self.client, reader(capabilities))
        self.attempt.on_over = self.done.append


@pytest.fixture
def scene():
    return Scene()


def test_a_slow_client_stops_the_server_until_it_caught_up_and_a_fast_one_nobody(scene):
    scene.client.blocked = True
    scene.attempt.data_received(ANSWER[:50])
    assert not scene.server.link.is_reading
    scene.client.blocked = False
    scene.attempt.client_writable()
    assert scene.server.link.is_reading
    scene.server.link.is_reading = False  # somebody else's wish
    scene.attempt.client_writable()
    assert not scene.server.link.is_reading


def test_a_connection_is_given_back_reading_even_if_its_client_is_still_behind(scene):
    scene.client.blocked = True
    scene.attempt.data_received(ANSWER[:50])
    scene.attempt.data_received(ANSWER[50:])
    scene.attempt.answer_completed()
    assert scene.server.link.is_reading


async def test_a_file_goes_to_the_server_under_its_own_numbers_and_at_its_pace():
    client, server = RecordingLink(), Server()
    asked: list[int] = []
    scanner = Resequencer(MODERN, next_sequence=5, allows_local_infile=True)
    attempt = attempt_on(server, client, scanner)
    attempt.on_file = asked.append
    request = b"\xfbrows.csv"
    assert attempt.data_received(frames([request], 1)[0]) is None
    assert client.written == frames([request], 5)[0]
    assert asked == [6]
    attempt.file(b"1\n")
    read = [client.is_reading]
    server.link.room_bytes = 0
    attempt.file(b"2\n")
    read.append(client.is_reading)
    server.on_writable()
    assert [*read, client.is_reading] == [True, False, True]
    attempt.file(b"")
    assert server.link.written == frames([b"1\n", b"2\n", b""], 2)[0]
