import asyncio

from streamfrom.proxy import fairness
from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.execution.reply import Reply
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.proxy.wire.framing import frame, frames
from streamfrom.proxy.wire.prepare_response import PARAMETER
from streamfrom.proxy.wire.resultset import ColumnDefinition, column_definition
from tests.proxy.fake_client import MODERN, OLD
from tests.proxy.rigs import RecordingLink
from tests.proxy.wire.peers import unframed


class Scene:
    """A reply and what it wrote."""

    def __init__(self, capabilities=MODERN, sequence=1):
        self.link = RecordingLink()
        self.state = SessionState(int(capabilities), Settings())
        self.reply = Reply(self.link.link, self.state, sequence)
        self.first = sequence

    def packets(self):
        """Every payload, numbered without a gap up to the reply's own count."""
        found = unframed(bytes(self.link.written), self.first)
        assert (self.first + len(found)) % 256 == self.reply.sequence % 256
        return found


def test_an_old_client_is_told_before_the_rows_that_it_switched_autocommit_off():
    scene = Scene(OLD)
    scene.state.use(Settings([("autocommit", "OFF")]))
    answer, _ = frames([b"\1", column_definition(ColumnDefinition("a")), b"\1x"], 1)
    written = scene.reply.scanner().feed(answer)
    assert frame(b"\xfe\0\0\0\0", 3) in written


def test_behind_a_broken_answer_only_a_whole_packet_may_be_followed():
    stream = Scene()
    stream.reply.rows([ColumnDefinition("a")], [(b"row",), (b"row",)])
    answer = bytes(stream.link.written)
    for cut, closes in ((answer[:-9], False), (answer[:-13], True)):
        scene = Scene()
        scanner = scene.reply.scanner()
        scene.link.write(scanner.feed(cut))
        scene.reply.broke_off(scanner)
        assert scene.link.closed is closes
    assert Scene().reply.sequence == 1


async def test_many_definitions_are_framed_while_others_have_their_turns(monkeypatch):
    """Those of 65,535 parameters held everybody up for 14 ms."""
    monkeypatch.setattr(fairness, "SLICE_S", 0)
    scene = Scene()
    parameter = column_definition(PARAMETER)
    turns = []

    async def other():
        while True:
            turns.append(bytes(scene.link.written))
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await scene.reply.prepared(7, [parameter] * 65_535, [])
    task.cancel()
    head, *parameters = scene.packets()
    assert (head[0], head[1:5]) == (0, b"\7\0\0\0")
    assert parameters == [parameter] * 65_535
    assert len(turns) > 30
    assert set(turns) == {b""}, "an error in the middle of it would have no place"
