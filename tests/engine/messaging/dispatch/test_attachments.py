"""A stream holds no more of its prefetch than the share of this process, and who divides it hears when it is kept, and when more is due."""

from streamfrom.engine.messaging.dispatch.events import (
    Attached,
    KeepsShare,
    ShareGiven,
    Tick,
    WantShare,
)
from tests.engine.messaging.dispatch.test_held_messages import Rig
from tests.engine.messaging.job_ends import polled
from tests.engine.messaging.table_rig import EMPTY, SECOND_NS, START_NS


TOLD = KeepsShare | WantShare


def told(actions):
    return [action for action in actions if isinstance(action, TOLD)]


def sharing(share, prefetch=10):
    """Return a rig with one stream that has *share* of its prefetch."""
    rig = Rig()
    actions = rig.post(Attached(1, None, ("id", "message"), prefetch, share=share))
    assert told(actions) == [KeepsShare(1, min(share, prefetch or 100))]
    rig.post(polled("0", EMPTY))
    return rig


def test_it_wants_more_only_for_what_is_due():
    rig = sharing(0)
    later_ns = START_NS + 5 * SECOND_NS
    assert told(rig.due(1, time_next_ns=later_ns)) == []
    assert rig.state.wake_ns() == later_ns
    rig.now_ns = later_ns
    assert told(rig.post(Tick())) == [WantShare(1)]


def test_a_share_for_a_stream_that_is_gone_is_passed_over():
    assert told(sharing(1).post(ShareGiven(9, 3))) == []
