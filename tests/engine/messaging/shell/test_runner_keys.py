"""What a flood of one key leaves to others, where messages of a key wait for one another."""

import asyncio
from collections import Counter
from functools import partial

import pytest

from streamfrom.engine.messaging.dispatch.events import Acked, Due
from tests.engine.messaging.runner_rig import COMMENT, Receiver, RunnerRig
from tests.sim.memory_store import StoredRow


FLOOD = 2_000
FEW = 20
CLAIM_S = 0.01
KEYS = COMMENT + ",vt_key=message,vt_max_per_key="


class Acknowledging(Receiver):
    """Acknowledges what it is given a moment later."""

    def __init__(self, rig, **options):
        super().__init__(**options)
        self.rig = rig

    def deliver(self, rows):
        ids = [row.id for row in rows]
        asyncio.get_running_loop().call_later(2 * CLAIM_S, self.acknowledge, ids)
        return super().deliver(rows)

    def acknowledge(self, ids):
        self.rig.runner.post(Acked("0", self.rig.store.ack("ks", "0", "msg", ids)))


async def pause(_call, _shard):
    await asyncio.sleep(CLAIM_S)


@pytest.mark.parametrize(("in_order", "begun_s"), [(1, 1), (2, 0.05), (10, 0.05), (10, 1)])
async def test_messages_of_other_keys_go_past_a_flood(in_order, begun_s):
    rig = RunnerRig(KEYS + str(in_order), pause=pause)
    receiver = Acknowledging(rig)
    insert = partial(rig.store.insert, "ks", "0", "msg")
    insert(*(StoredRow(b"%d" % one, key=b"'a'") for one in range(1, FLOOD + 1)))
    rig.runner.attach(receiver)
    await asyncio.sleep(begun_s)
    before = len(receiver.ids)
    rig.runner.post(Due("0", insert(StoredRow(b"5000", key=b"'b'"))))
    await asyncio.sleep(10 * CLAIM_S)
    assert receiver.ids.index(5000) - before < FEW


@pytest.mark.parametrize("fair", [False, True])
async def test_keys_take_turns_and_of_each_no_more_start_than_may(fair):
    settings = COMMENT + ",vt_key=tenant,vt_max_per_key=2" + ",vt_fair=on" * fair
    rig = RunnerRig(settings, numbers=("tenant",), pause=pause)
    # Two of the urgent flood fit into the room for three, and one of the next.
    receiver = Acknowledging(rig, prefetch=3)
    for key in range(1, 4):
        rows = (StoredRow(b"%d%02d" % (key, n), key, key=b"%d" % key) for n in range(100))
        rig.store.insert("ks", "0", "msg", *rows)
    rig.runner.attach(receiver)
    await asyncio.sleep(200 * CLAIM_S)
    counts = Counter(ident // 100 for ident in receiver.ids[:30])
    assert counts.total() == 30
    if fair:
        assert max(counts.values()) - min(counts[key] for key in range(1, 4)) <= 3
    else:
        assert counts[3] == 0
