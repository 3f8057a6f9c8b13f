"""What a flood of one key leaves to others, where messages of a key wait for one another."""

import asyncio
from functools import partial

import pytest

from streamfrom.engine.messaging.dispatch.events import Acked, Due
from tests.engine.messaging.runner_rig import COMMENT, STOPPED, Receiver, RunnerRig
from tests.sim.memory_store import StoredRow
from tests.virtual_loop import running


FLOOD = 2_000
FEW = 20
CLAIM_S = 0.01
KEYS = COMMENT + ",vt_key=message,vt_max_per_key="


@pytest.mark.parametrize(("in_order", "begun_s"), [(1, 1), (2, 0.05), (10, 0.05), (10, 1)])
@running
async def test_messages_of_other_keys_go_past_a_flood(in_order, begun_s):
    async def pause(_call, _shard):
        await asyncio.sleep(CLAIM_S)

    class Acknowledging(Receiver):
        def deliver(self, rows):
            ids = [row.id for row in rows]
            asyncio.get_running_loop().call_later(2 * CLAIM_S, self.acknowledge, ids)
            return super().deliver(rows)

        def acknowledge(self, ids):
            rig.runner.post(Acked("0", rig.store.ack("ks", "0", "msg", ids)))

    rig, receiver = RunnerRig(KEYS + str(in_order), pause=pause), Acknowledging()
    insert = partial(rig.store.insert, "ks", "0", "msg")
    insert(*(StoredRow(b"%d" % one, key=b"'a'") for one in range(1, FLOOD + 1)))
    rig.runner.attach(receiver)
    await asyncio.sleep(begun_s)
    before = len(receiver.ids)
    rig.runner.post(Due("0", insert(StoredRow(b"5000", key=b"'b'"))))
    await asyncio.sleep(10 * CLAIM_S)
    assert receiver.ids.index(5000) - before < FEW
    await rig.runner.stop(STOPPED)
