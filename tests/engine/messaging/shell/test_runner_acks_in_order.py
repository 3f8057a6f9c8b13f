"""Acks that are written with the claim of who comes next, where messages wait for others of their key."""

import asyncio

import pytest

from streamfrom.engine.errors import OutcomeUnknown, StoreError
from streamfrom.engine.messaging.dispatch.events import Deposed
from streamfrom.engine.messaging.dispatch.shard_state import ACKS_MAX
from tests.engine.messaging.runner_rig import COMMENT, STOPPED, Receiver, RunnerRig
from tests.virtual_loop import running


STRICT = COMMENT + ",vt_order=strict"
KEYS = COMMENT + ",vt_key=message,vt_max_per_key=1"


class FakeAck:
    """An ack that remembers what it was told."""

    def __init__(self, *ids):
        self.ids = tuple(b"%d" % each for each in ids)
        self.acked_ns = 77
        self.is_left = self.is_sent = False
        self.told = []

    def acknowledged(self):
        self.told.append("acknowledged")

    def send_alone(self):
        self.told.append("alone")

    def lost(self, reason):
        self.told.append(reason)


class Calls:
    """What a call of the store does before it answers: it takes a while, or fails."""

    def __init__(self):
        self.pause_s = 0.0
        self.error = None

    async def __call__(self, call, _shard):
        if call in ("claim", "acknowledge"):
            await asyncio.sleep(self.pause_s)
            if self.error is not None:
                raise self.error


class Scene:
    """A queue in strict order, of which the first message was sent."""

    def __init__(self, comment=STRICT, prefetch=0):
        self.calls = Calls()
        self.rig, self.receiver = (
            RunnerRig(comment, pause=self.calls),
            Receiver(prefetch=prefetch),
        )
        self.runner = self.rig.runner

    async def sent(self, *ids):
        self.rig.insert(*ids)
        self.runner.attach(self.receiver)
        await asyncio.sleep(0.1)
        return self

    def takes(self, ack):
        return self.runner.acknowledge("0", ack)

    async def told_of_ack(self, *ids):
        """Return what an ack is told at once."""
        ack = FakeAck(*ids)
        assert self.takes(ack)
        await asyncio.sleep(0.001)
        return ack.told


@pytest.mark.parametrize("prefetch", [0, 1, 2, 100])
@running
async def test_an_ack_and_the_claim_of_who_comes_next_are_one_call(prefetch):
    scene = await Scene(prefetch=prefetch).sent(1, 2, 3)
    assert scene.receiver.ids == [1]
    ack = FakeAck(1)
    assert scene.takes(ack)
    await asyncio.sleep(0.001)
    assert (ack.told, ack.is_sent) == (["acknowledged"], False)
    assert scene.receiver.ids == [1, 2]
    assert (scene.rig.calls("claim"), scene.rig.calls("acknowledge")) == (2, 0)
    assert scene.rig.row(1).time_acked_ns == 77
    assert scene.runner.state.counters("0").acked == 1
    assert scene.runner.held() == 1


@running
async def test_a_full_stream_whose_ack_is_refused_is_given_nothing_and_goes_on_after_the_next_ack():
    scene = await Scene(KEYS, prefetch=1).sent(1, 2)
    assert scene.receiver.ids == [1]
    scene.rig.row(1).is_locked = True
    assert await scene.told_of_ack(1) == ["alone"]
    assert scene.receiver.ids == [1]
    assert (scene.rig.row(2).epoch, scene.runner.held()) == (0, 1)
    scene.rig.row(1).is_locked = False
    assert await scene.told_of_ack(1) == ["acknowledged"]
    assert scene.receiver.ids == [1, 2]


@running
async def test_an_ack_is_written_where_nobody_can_be_given_the_next():
    scene = await Scene().sent(1, 2)
    scene.runner.detach(scene.receiver)
    assert await scene.told_of_ack(1) == ["acknowledged"]
    assert scene.rig.row(2).epoch == 0
    # The one that follows is known to be due.
    scene.runner.attach(Receiver(2))
    await asyncio.sleep(0.001)
    assert scene.rig.row(2).epoch == 1


@pytest.mark.parametrize(
    ("error", "told"), [(StoreError("refused"), "alone"), (OutcomeUnknown("lost"), "lost")]
)
@running
async def test_an_ack_whose_transaction_fails_is_sent_by_itself_unless_it_may_have_taken_effect(
    error, told
):
    scene = await Scene().sent(1, 2)
    ack, scene.calls.error = FakeAck(1), error
    assert scene.takes(ack)
    await asyncio.sleep(0.001)
    assert ack.told == [told]
    assert scene.receiver.ids == [1]
    scene.calls.error = None
    again = FakeAck(1)
    assert scene.takes(again)
    await asyncio.sleep(1)
    assert again.told == ["acknowledged"]
    assert scene.receiver.ids == [1, 2]


@running
async def test_acks_that_come_while_a_claim_runs_go_with_the_next_one():
    scene = await Scene(KEYS).sent(1, 2, 3)
    assert scene.receiver.ids == [1, 2, 3]  # of no key
    scene.calls.pause_s = 0.01
    acks = [FakeAck(1), FakeAck(2), FakeAck(3)]
    for ack in acks:
        assert scene.takes(ack)
    await asyncio.sleep(0)
    assert [ack.is_sent for ack in acks] == [True, False, False]
    await asyncio.sleep(1)
    assert [ack.told for ack in acks] == [["acknowledged"]] * 3
    assert (scene.rig.calls("claim"), scene.rig.calls("acknowledge")) == (1, 2)


@running
async def test_of_two_acks_of_a_message_the_second_is_left_to_be_sent_after_the_first():
    scene = await Scene().sent(1, 2)
    scene.calls.pause_s = 0.01
    assert scene.takes(FakeAck(1))
    assert not scene.takes(FakeAck(2, 1))
    assert scene.takes(FakeAck(5))
    assert not scene.takes(FakeAck(5))


@running
async def test_so_many_acks_wait_and_no_more():
    scene = await Scene().sent(1)
    scene.calls.pause_s = 0.01
    assert all(scene.takes(FakeAck(ident)) for ident in range(1, ACKS_MAX + 2))
    assert not scene.takes(FakeAck(ACKS_MAX + 2))


@running
async def test_other_queues_and_who_does_not_dispatch_take_none():
    scene = await Scene(COMMENT).sent(1)
    assert not scene.takes(FakeAck(1))
    await scene.runner.stop(STOPPED)
    scene = await Scene().sent(1)
    scene.runner.post(Deposed("0", "somebody else dispatches"))
    assert not scene.takes(FakeAck(1))
    await scene.runner.stop(STOPPED)
    assert not scene.takes(FakeAck(1))


@running
async def test_an_ack_whose_client_has_left_before_it_was_written_is_not_written():
    scene = await Scene().sent(1, 2)
    ack = FakeAck(1)
    assert scene.takes(ack)
    ack.is_left = True
    await asyncio.sleep(0.1)
    assert ack.told == []
    assert scene.rig.row(1).time_acked_ns is None


@running
async def test_who_stops_leaves_no_ack_without_an_answer():
    scene = await Scene().sent(1, 2)
    scene.calls.pause_s = 100
    first, second = FakeAck(1), FakeAck(2)
    assert scene.takes(first)
    assert scene.takes(second)
    await scene.runner.stop(STOPPED)
    assert first.told == ["the proxy stops"]
    assert second.told == ["alone"]
