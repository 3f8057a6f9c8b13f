"""A queue that is paused sends nothing, and knows what is due when it goes on."""

from streamfrom.engine.messaging.dispatch.events import Reconfigured
from streamfrom.engine.messaging.queue.poll import Poll, PollResult
from tests.engine.messaging.job_ends import polled
from tests.engine.messaging.queue.test_shard_queue import tier
from tests.engine.messaging.table_rig import TableRig, claimed, only, table


ON, OFF = Reconfigured(table(more=",vt_paused=on")), Reconfigured(table())


def test_nothing_is_sent_while_it_is_paused_and_all_that_is_due_afterwards():
    rig = TableRig().attach(1)
    only(rig.post(ON), Poll)
    assert rig.post(polled("0", PollResult((tier([1]),)))) == []
    assert rig.due(2, 3) == []
    assert rig.due(4, time_next_ns=rig.now_ns + 10**9) == []
    assert rig.later(1) == []
    assert rig.state.wake_ns() > rig.now_ns, "it does not spin on what is due"
    assert claimed(rig.post(OFF)) == [[1, 2, 3, 4]]
