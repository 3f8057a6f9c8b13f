"""One member's streams at others, whose answers the test gives."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from streamfrom.engine.errors import ReceiverGone
from streamfrom.engine.fleet.directory import Member
from streamfrom.engine.fleet.peer_link import (
    CloseStream,
    DefinitionsChanged,
    ForgetStream,
    News,
    OpenStream,
    RequestDone,
    RowsSent,
    ShowLeases,
    StreamEnded,
)
from streamfrom.engine.fleet.streams_elsewhere import (
    ACK_ANSWERED_S,
    REST_S,
    SHOW_LEASES_S,
    StreamsElsewhere,
)
from streamfrom.engine.messaging.dispatch.events import (
    AckedUnnamed,
    Changed,
    Deliver,
    Finish,
    KeepsShare,
    ProgressedElsewhere,
    ReportProgress,
    ShareGiven,
    WaitOver,
    WantShare,
)
from streamfrom.engine.messaging.streams.attached_receiver import UNLIMITED
from streamfrom.engine.messaging.table.message import AUTO, ClaimedRow, ClientReceiver
from streamfrom.engine.messaging.table.message_table import MessageTable, load
from streamfrom.sqlparse_ext.writes.message_effects import ANY_TABLE
from tests.engine.fleet.members import Client
from tests.sim.memory_store import DEFAULT_COMMENT, raw_table


def member(name, address="there:1"):
    return Member(name, "", address, "", 0, "1", "c")


class Link:
    def __init__(self, hearer):
        self.hearer = hearer
        self.sent: list[Any] = []
        self.is_closed = False

    def send(self, message):
        self.sent.append(message)

    def close(self):
        self.is_closed = True


class Rig:
    """`PeerTransport`, `Fleet` and `DispatcherHere`, which note everything."""

    def __init__(self, *dispatchers: str):
        """dispatchers: of the shards 0, 1 … of ks, by their names."""
        self.links: list[tuple[str, Link]] = []
        self.said: list[Any] = []
        self.streams = StreamsElsewhere(self, self.present, self.unserved)
        here: Any = self
        self.streams.here = here
        self.attached: list[ClientReceiver] = []  # in this process
        self.newcomers: list[Member] = []
        self.held_here: dict[str, tuple[bytes, ...]] = {}
        self.dispatches = True
        for shard, name in enumerate(dispatchers):
            self.streams.dispatched_by("ks", str(shard), member(name))

    def connect(self, member, hearer):
        link = Link(hearer)
        self.links.append((member.id, link))
        return link

    def greet(self, member):
        self.said.append(("greet", member.id))

    async def present(self):
        return self.newcomers

    def served_elsewhere(self, keyspace, shard):
        self.said.append(("served", shard))

    def unserved(self, keyspace, shard, reason):
        self.said.append(("unserved", shard, reason))

    def ready(self, receiver):
        """The socket has taken everything."""

    def held_by(self, receiver):
        return self.held_here

    def take_over(self, receiver, held):
        self.said.append(("take_over", held))

    def wait_over(self, receiver):
        self.post(WaitOver(receiver.id))

    def post(self, event):
        assert event.receiver in {receiver.id for receiver in self.attached}
        self.said.append(replace(event, receiver=0))

    def dispatches_any(self, keyspace, covered):
        return self.dispatches

    def attach(self, receiver, keyspace, name, *, hearer):
        self.attached.append(receiver)
        self.own = hearer
        return table(name, self.prefetch)

    def reconfigure(self, table):
        """Its own part has no streams."""

    def detach(self, receiver, unsent):
        self.said.append(("detach", unsent))

    def forget(self, receiver, *, has_left):
        self.said.append(("forget", has_left))

    def open(self, client=None, keyspace="ks", prefetch=0):
        client = client or Client()
        self.prefetch = prefetch
        self.streams.attach(client, keyspace, "msg")
        return client


def table(name, prefetch):
    setting = "auto" if prefetch == AUTO else prefetch
    made = load("ks", raw_table(name, f"{DEFAULT_COMMENT},vt_prefetch={setting}"), 1)
    assert isinstance(made, MessageTable)
    return made


async def test_one_stream_for_each_member_with_the_shards_it_dispatches():
    rig = Rig()
    for shard, name in [("a", "m1"), ("b", "m1"), ("c", "m2")]:
        rig.streams.dispatched_by("ks", shard, member(name))
    rig.streams.dispatched_by("other", "d", member("m3"))
    rig.open(Client(shards=frozenset({"a", "c"})))
    opened = {name: link.sent[0].shards for name, link in rig.links}
    assert opened == {"m1": ("a",), "m2": ("c",)}


def shared(prefetch):
    """Return a rig with one stream that has the table's *prefetch* of this process and m1, and the link to m1, which has answered."""
    rig = Rig()
    rig.open(Client(prefetch=None), prefetch=prefetch)
    rig.streams.dispatched_by("ks", "0", member("m1"))
    ((_, link),) = rig.links
    share = link.sent[0].share
    assert share == (0 if prefetch > 0 else UNLIMITED)
    link.hearer.heard(KeepsShare(1, share))
    return rig, link


async def test_where_nothing_is_dispatched_here_the_only_dispatcher_gets_the_whole_prefetch():
    rig = Rig("m1")
    rig.dispatches = False
    rig.open(Client(prefetch=None), prefetch=10)
    ((_, link),) = rig.links
    link.hearer.heard(KeepsShare(1, link.sent[0].share))
    rig.own(KeepsShare(1, 0))
    assert (rig.said, link.sent[-1].share) == ([ShareGiven(0, 0)], 10)


async def test_a_share_goes_back_to_the_others_when_its_link_breaks():
    rig, link = shared(10)
    rig.own(KeepsShare(1, 5))
    link.hearer.lost("connection reset")
    rig.own(WantShare(1))
    assert rig.said[-1] == ShareGiven(0, 10)


async def test_a_prefetch_that_is_altered_concerns_streams_without_one_of_their_own():
    rig = Rig()
    rig.open(Client(prefetch=None), prefetch=10)
    rig.open(Client(id=2, prefetch=10), prefetch=10)
    rig.streams.reconfigure(table("other", 3))
    assert rig.said == []
    rig.streams.reconfigure(table("msg", 3))
    assert rig.said == [ShareGiven(0, 3)]


@pytest.mark.parametrize("none", [0, AUTO])
async def test_a_limit_of_the_table_comes_and_goes_while_a_stream_is_open(none):
    rig, link = shared(none)
    assert rig.said == [], "each dispatcher sends what it likes"
    rig.streams.reconfigure(table("msg", 4))
    shares = [rig.said[-1].share, link.sent[-1].share]
    assert sum(shares) == 4
    rig.own(KeepsShare(1, shares[0]))
    link.hearer.heard(KeepsShare(1, shares[1]))
    rig.streams.reconfigure(table("msg", none))
    assert (rig.said[-1].share, link.sent[-1].share) == (UNLIMITED, UNLIMITED)


async def test_a_stream_moves_with_the_dispatcher_and_what_came_is_the_clients():
    rig = Rig("m1")
    client = rig.open()
    rig.links[0][1].hearer.heard(RowsSent(1, 0, (b"x", b"y")))
    rig.streams.dispatched_by("ks", "0", member("m2"))
    assert rig.links[0][1].sent[1:] == [CloseStream(1, 2)]
    assert isinstance(rig.links[1][1].sent[0], OpenStream)
    rig.links[0][1].hearer.heard(RowsSent(1, 2, (b"late",)))
    assert len(client.rows) == 2, "what comes for a closed stream is given back there"
    rig.streams.detach(client)
    rig.streams.dispatched_by("ks", "0", member("m3"))
    assert len(rig.links) == 2, "a receiver that is over is opened nowhere again"
    rig.streams.forget(client, has_left=True)
    assert rig.links[0][1].sent[2:] == [ForgetStream(1, True)]
    assert rig.links[1][1].sent[1:] == [CloseStream(2, 0), ForgetStream(2, True)]


async def test_rows_that_a_client_which_is_gone_refuses_are_given_back():
    rig = Rig("m1")
    client = rig.open(Client(is_gone=True))
    ((_, link),) = rig.links
    link.hearer.heard(RowsSent(1, 0, (b"x",)))
    rig.streams.detach(client)
    assert link.sent[-1] == CloseStream(1, 0)
    assert not isinstance(client.ended, ReceiverGone)


async def test_a_lost_link_is_tried_again_with_growing_pauses_and_tells_why():
    rig = Rig("m1")
    rig.open()
    for pause_s in (0.1, 0.2, 0.4, 0.8, 1.0, 1.0):
        count = len(rig.links)
        rig.links[-1][1].hearer.lost("there:1: connection refused")
        await asyncio.sleep(pause_s - 0.01)
        assert len(rig.links) == count
        await asyncio.sleep(0.02)
        assert len(rig.links) == count + 1
    assert set(rig.said) == {("unserved", "0", "there:1: connection refused")}


async def test_missing_rows_begin_all_streams_of_the_link_anew():
    rig = Rig("m1")
    rig.open()
    rig.open(Client(2))
    link = rig.links[0][1]
    link.hearer.heard(RowsSent(1, 5, (b"x",)))
    assert link.is_closed
    await asyncio.sleep(0.11)
    assert len(rig.links) == 2
    assert [message.receiver for message in rig.links[1][1].sent] == [3, 4]


async def test_a_stream_with_an_end_is_asked_of_everybody_and_ends_once_all_are_done():
    rig = Rig("m1", "m2")
    client = rig.open(Client(rows_max=3))
    (_, one), (_, two) = rig.links
    assert [link.sent[0].rows_max for link in (one, two)] == [3, 3]
    one.hearer.heard(RowsSent(1, 0, (b"x",)))
    assert one.sent[-1:] == [WaitOver(1)]
    assert two.sent[-1:] == [WaitOver(2)], "nobody waits for a second one"
    assert WaitOver(0, has_rows_elsewhere=True) in rig.said
    one.hearer.heard(Finish(1))
    rig.attached[0].finish()
    assert not client.is_finished
    two.hearer.heard(Finish(2))
    assert client.is_finished


async def test_rows_beyond_the_limit_are_given_back_by_whom_they_came():
    rig = Rig("m1", "m2")
    client = rig.open(Client(rows_max=3))
    (_, one), (_, two) = rig.links
    one.hearer.heard(RowsSent(1, 0, (b"1", b"2")))
    two.hearer.heard(RowsSent(2, 0, (b"3", b"4", b"5")))
    assert client.payloads == [b"1", b"2", b"3"]
    assert client.is_finished
    rig.streams.detach(client)
    assert one.sent[-1] == CloseStream(1, 2)
    assert two.sent[-1] == CloseStream(2, 1)


async def test_a_stream_with_an_end_whose_dispatcher_changes_asks_the_new_one_for_the_rest():
    rig = Rig("m1")
    rig.open(Client(rows_max=3))
    rig.links[0][1].hearer.heard(RowsSent(1, 0, (b"1",)))
    rig.streams.dispatched_by("ks", "0", member("m2"))
    opened, stop = rig.links[1][1].sent
    assert (opened.rows_max, stop) == (2, WaitOver(2))


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("way", ["moved", "here", "lost", "ended"])
async def test_a_stream_with_an_end_is_not_answered_as_empty_by_a_dispatcher_that_is_gone(
    way, rows
):
    """With a row it ends at once, without it waits for the next dispatcher, as this process does."""
    rig = Rig("m1", "m2")
    client = rig.open(Client(rows_max=3))
    (_, one), (_, two) = rig.links
    two.hearer.heard(RowsSent(2, 0, (b"x",) * rows))
    rig.streams.wait_over(client)
    rig.attached[0].finish()
    two.hearer.heard(Finish(2))
    assert not client.is_finished
    match way:
        case "moved":
            rig.streams.dispatched_by("ks", "0", None)
        case "here":
            rig.streams.dispatched_here("ks", "0")
        case "lost":
            one.hearer.lost("gone")
        case _:
            one.hearer.heard(StreamEnded(1, "gone", {}))
    await asyncio.sleep(0)
    assert client.is_finished == bool(rows)
    assert len(rig.attached) == 2 - rows
    if not rows:
        assert rig.said[-1] == WaitOver(0)
        rig.attached[1].finish()
        assert client.is_finished


@pytest.mark.parametrize("hanging", ["here", "there"])
async def test_a_dispatcher_that_hangs_keeps_the_rows_of_others_from_no_client(hanging):
    """Their leases are running, so `STREAM … LIMIT` ends with them."""
    rig = Rig("m1", "m2")
    client = rig.open(Client(rows_max=3))
    (_, one), (_, two) = rig.links
    two.hearer.heard(RowsSent(2, 0, (b"x",)))
    two.hearer.heard(Finish(2))
    if hanging == "here":
        one.hearer.heard(Finish(1))
    else:
        rig.attached[0].finish()
    await asyncio.sleep(REST_S - 0.1)
    assert not client.is_finished
    await asyncio.sleep(0.2)
    assert client.is_finished


async def test_a_shard_that_its_dispatcher_refuses_keeps_no_other_from_a_stream():
    """The first one's server may be away, and with it the directory that names its next dispatcher."""
    rig = Rig("m1", "m1")
    rig.open()
    link = rig.links[0][1]
    link.hearer.heard(StreamEnded(1, "no", unserved=("0",)))
    assert rig.said == [("unserved", "0", "no")]
    await asyncio.sleep(1)
    assert [one.shards for one in link.sent if isinstance(one, OpenStream)][1:] == [("1",)]
    rig.streams.dispatched_by("ks", "1", member("m1"))
    assert len(link.sent) == 3, "nothing has changed"
    rig.streams.dispatched_by("ks", "0", member("m1"))
    assert link.sent[-1].shards == ("0", "1"), "the directory says it again"


async def test_members_are_waited_for_until_they_have_read_definitions_but_not_for_long():
    rig = Rig()
    await rig.streams.definitions_changed("ks", ())
    assert rig.links == [], "nobody is there"
    rig.newcomers = [member("a"), member("b")]
    waiting = asyncio.create_task(rig.streams.definitions_changed("ks", ("b", "a")))
    await asyncio.sleep(0.5)
    (_, one), (_, two) = rig.links
    (asked,) = one.sent
    assert asked == DefinitionsChanged(asked.number, "ks", ("a", "b"))
    one.hearer.heard(RequestDone(asked.number))
    await asyncio.sleep(0)
    assert not waiting.done(), "the other has not answered"
    assert len(two.sent) == 1
    began_s = asyncio.get_running_loop().time()
    await waiting
    assert asyncio.get_running_loop().time() - began_s <= 0.6


async def test_a_dispatcher_is_waited_for_until_it_has_written_leases_or_is_lost_or_silent():
    rig, loop = Rig(), asyncio.get_running_loop()
    await rig.streams.show_leases("ks", "0", "msg", None)
    assert rig.links == [], "nobody dispatches"
    rig.streams.dispatched_by("ks", "0", member("a"))
    waiting = asyncio.create_task(rig.streams.show_leases("ks", "0", "msg", (b"1",)))
    await asyncio.sleep(1)
    ((_, link),) = rig.links
    (want,) = link.sent
    assert want == ShowLeases(want.number, "ks", "msg", "0", (b"1",))
    assert not waiting.done()
    link.hearer.heard(RequestDone(want.number))
    await waiting
    began_s = loop.time()
    waiting = asyncio.create_task(rig.streams.show_leases("ks", "0", "msg", None))
    await asyncio.sleep(1)
    link.hearer.lost("reset")
    await waiting
    assert loop.time() - began_s < SHOW_LEASES_S
    await asyncio.sleep(1)
    await rig.streams.show_leases("ks", "0", "msg", None)
    assert loop.time() - began_s >= SHOW_LEASES_S


async def test_an_early_ack_that_is_not_answered_is_not_taken():
    rig = Rig("a")
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    waiting = asyncio.create_task(rig.streams.ack_early_elsewhere("ks", "0", "msg", (b"1",), 5))
    await asyncio.sleep(1)
    rig.links[0][1].hearer.lost("reset")
    assert await waiting is None
    assert loop.time() - began_s == 1
    assert await rig.streams.ack_early_elsewhere("ks", "0", "msg", (b"1",), 5) is None, (
        "it rests"
    )
    await asyncio.sleep(1)
    began_s = loop.time()
    assert await rig.streams.ack_early_elsewhere("ks", "0", "msg", (b"1",), 5) is None
    assert loop.time() - began_s == ACK_ANSWERED_S


def looks(link):
    return [
        (message.table, event.shard)
        for message in link.sent
        if isinstance(message, News)
        for event in message.events
        if event == Changed(event.shard, None)
    ]


async def test_a_link_that_was_lost_is_made_again_for_the_news_it_may_have_lost():
    rig = Rig("m1")
    rig.streams.happened("ks", "msg", AckedUnnamed("0"))
    ((_, lost),) = rig.links
    assert looks(lost) == []
    lost.hearer.lost("reset")
    rig.streams.happened("ks", "msg", AckedUnnamed("0"))
    await asyncio.sleep(0.11)
    _, (_, link) = rig.links
    assert looks(link) == [("msg", "0")]


async def test_dispatchers_follow_the_progress_that_others_report():
    rig = Rig("m1", "m2")
    rig.open()
    own = rig.own
    (_, first), (_, second) = rig.links
    first.hearer.heard(RowsSent(1, 0, (b"x", b"y")))
    own(Deliver(1, (ClaimedRow(b"1", "0", 0, 0, 1, b"x"),) * 3))
    second.hearer.heard(RowsSent(2, 0, (b"z",)))
    first.hearer.heard(RowsSent(1, 2, (b"x",)))
    sent = len(first.sent), len(second.sent)
    own(ReportProgress(1, 0))
    assert first.sent[sent[0] :] == [ProgressedElsewhere(1, 2)]
    assert second.sent[sent[1] :] == [ProgressedElsewhere(2, 0)]
    first.hearer.heard(ReportProgress(1, 2))
    assert rig.said[-1] == ProgressedElsewhere(0, 3)
    assert second.sent[-1] == ProgressedElsewhere(2, 1)
    first.hearer.heard(ReportProgress(1, 0))
    assert rig.said[-1] == ProgressedElsewhere(0, 3), "it was passed by before"


async def test_commits_of_a_moment_that_may_write_to_any_queue_are_reported_together():
    rig = Rig("m1")
    event = Changed("0", None)
    for times in (1, 2):
        for _ in range(100):
            rig.streams.happened("ks", ANY_TABLE, event)
        await asyncio.sleep(0.05)
        ((_, link),) = rig.links
        assert link.sent == times * [News("ks", ANY_TABLE, (event,))]
