"""Actions on messages of several shards, and what is no longer in the state that was meant."""

import pytest

from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.upkeep.peek import PeekState
from streamfrom.proxy.admin.queue_api import Action, QueueActions
from streamfrom.proxy.errors import BackendError
from tests.proxy.admin.conftest import Acting
from tests.sim.memory_store import loaded, raw_table


TABLE = loaded(raw_table("a`b", id_type="varchar"), "ks")


@pytest.fixture
def acting():
    return Acting()


async def test_each_shard_gets_its_own_messages_as_literals_until_one_refuses(acting):
    ids = {"-80": [b"x'y", b"z"], "80-": [], "c0-": [b"w"]}
    actions = QueueActions(acting, "app", "::1")
    assert await actions.act(TABLE, Action.DELETE, ids) == 2
    assert acting.sent == [
        ("app", "ks:-80", "DELETE FROM `a``b` WHERE `id` IN ('x''y', 'z')"),
        ("app", "ks:c0-", "DELETE FROM `a``b` WHERE `id` IN ('w')"),
    ]
    acting.sent.clear()
    acting.error = BackendError(1205, "HY000", "Lock wait timeout exceeded")
    with pytest.raises(BackendError, match="Lock wait"):
        await actions.act(TABLE, Action.ACK, {"0": [b"1"], "1": [b"2"]})
    assert [target for _, target, _ in acting.sent] == ["ks:0"]


async def test_what_has_left_the_parked_is_left_alone(acting):
    actions = QueueActions(acting, "app", "::1")
    for state, guard in (
        (PeekState.PARKED, f" AND time_next = {PARKED_NS}"),
        (PeekState.READY, ""),
    ):
        await actions.act(TABLE, Action.RETRY, {"0": [b"1"]}, state)
        assert ("time_next = 9" in acting.sent[-1][2]) == bool(guard)
        assert acting.sent[-1][2].endswith(guard)
