import asyncio

import pytest

from streamfrom.proxy import fairness
from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.errors import UnknownDatabase
from streamfrom.proxy.execution.reply import Reply
from streamfrom.proxy.execution.session_state import SessionState, Transaction
from streamfrom.proxy.wire.constants import Status
from streamfrom.proxy.wire.framing import Framer, frame, frames
from streamfrom.proxy.wire.prepare_response import PARAMETER
from streamfrom.proxy.wire.resequencer import Resequencer
from streamfrom.proxy.wire.response import PassThrough
from streamfrom.proxy.wire.resultset import (
    ColumnDefinition,
    column_definition,
    parse_err,
    parse_ok,
)
from tests.proxy.fake_client import MODERN, OLD
from tests.proxy.rigs import RecordingLink


class Scene:
    """A reply and what it wrote."""

    def __init__(self, capabilities=MODERN, sequence=1):
        self.link = RecordingLink()
        self.state = SessionState(int(capabilities), Settings())
        self.reply = Reply(self.link.link, self.state, sequence)
        self.first = sequence

    def packets(self):
        """Every payload, numbered without a gap up to the reply's own count."""
        framer = Framer(1 << 24)
        framer.next_sequence = self.first
        framer.feed(bytes(self.link.written))
        found = []
        while (payload := framer.next_packet()) is not None:
            found.append(payload)
        assert framer.next_sequence == self.reply.sequence % 256
        return found


@pytest.mark.parametrize("sequence", [1, 5])
@pytest.mark.parametrize("capabilities", [MODERN, OLD])
def test_everything_is_numbered_behind_what_the_client_has(capabilities, sequence):
    scene = Scene(capabilities, sequence)
    scene.reply.more = True
    scene.reply.ok()
    scene.reply.rows(
        [ColumnDefinition("a"), ColumnDefinition("b")], [(b"1", None), (b"2", b"x")]
    )
    scene.reply.rows([ColumnDefinition("a")], [])
    scene.reply.more = False
    scene.reply.error(UnknownDatabase("x"))
    packets = scene.packets()
    assert packets[0][0] == 0
    assert parse_err(packets[-1]).code == 1049


def test_an_ok_says_what_it_was_told_and_the_sessions_flags():
    scene = Scene()
    scene.state.transaction = Transaction(b"BEGIN")
    scene.reply.ok(affected_rows=3, last_insert_id=7, warnings=2, info=b"Records: 3")
    (packet,) = scene.packets()
    ok = parse_ok(packet)
    assert (ok.affected_rows, ok.last_insert_id, ok.warnings, ok.info) == (
        3,
        7,
        2,
        b"Records: 3",
    )
    assert ok.status == Status.AUTOCOMMIT | Status.IN_TRANS


def test_every_answer_but_the_last_says_that_more_follow():
    scene = Scene()
    scene.reply.more = True
    scene.reply.ok()
    scene.reply.rows([ColumnDefinition("a")], [])
    scene.reply.more = False
    scene.reply.ok()
    first, *_, rows_end, last = scene.packets()
    for packet, more in ((first, True), (rows_end, True), (last, False)):
        assert bool(parse_ok(packet).status & Status.MORE_RESULTS_EXISTS) is more


@pytest.mark.parametrize(("capabilities", "packets"), [(MODERN, 3), (OLD, 4)])
def test_an_endless_answer_begins_with_its_columns(capabilities, packets):
    scene = Scene(capabilities)
    scene.reply.head(
        [column_definition(ColumnDefinition("a")), column_definition(ColumnDefinition("b"))]
    )
    assert len(scene.packets()) == packets


def test_the_end_of_rows_and_bare_text():
    scene = Scene(OLD)
    scene.reply.end_of_rows()
    scene.reply.packet(b"Uptime: 5")
    assert scene.packets() == [b"\xfe\0\0\x02\0", b"Uptime: 5"]


def test_an_old_client_is_told_before_the_rows_that_it_switched_autocommit_off():
    scene = Scene(OLD)
    scene.state.use(Settings([("autocommit", "OFF")]))
    answer, _ = frames([b"\1", column_definition(ColumnDefinition("a")), b"\1x"], 1)
    written = scene.reply.scanner().feed(answer)
    assert frame(b"\xfe\0\0\0\0", 3) in written


def test_the_cheap_reader_serves_a_lone_first_answer_and_nothing_else():
    assert isinstance(Scene().reply.scanner(), PassThrough)
    assert isinstance(Scene(OLD).reply.scanner(), Resequencer)
    assert isinstance(Scene(sequence=2).reply.scanner(), Resequencer)
    assert isinstance(Scene().reply.scanner(columns=False), Resequencer)
    assert isinstance(Scene().reply.scanner(final=False), Resequencer)
    several = Scene().reply
    several.more = True
    assert isinstance(several.scanner(), Resequencer)


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


@pytest.mark.parametrize("capabilities", [MODERN, OLD])
def test_rows_that_were_updated_are_told_as_a_server_tells_them(capabilities):
    scene, other = Scene(capabilities), Scene(capabilities)
    for each in (scene, other):
        each.state.transaction = Transaction(b"BEGIN")
    for rows in (1, 300):
        scene.reply.updated(rows)
        info = f"Rows matched: {rows}  Changed: {rows}  Warnings: 0".encode()
        other.reply.ok(affected_rows=rows, info=info)
    assert scene.link.written == other.link.written
    assert [parse_ok(packet).affected_rows for packet in scene.packets()] == [1, 300]
