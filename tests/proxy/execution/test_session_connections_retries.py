"""Attempts to run one statement: who waits for which shard, until when."""

from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.proxy.execution.retry_rules import Ending
from streamfrom.proxy.execution.session_connections import Retries


class Shard:
    def __init__(self, *, comes_back=True):
        self.comes_back = comes_back
        self.deadlines: list[float] = []

    async def wait_available(self, deadline_s):
        self.deadlines.append(deadline_s)
        return self.comes_back


class Case:
    """A session outside a transaction, and the attempts of its statement."""

    def __init__(self, *, is_ack=False, autocommit=True, buffer_s=60.0):
        settings = SimpleNamespace(autocommit=autocommit)
        self.state: Any = SimpleNamespace(is_stopped=False, settings=settings)
        self.branches: Any = SimpleNamespace(has_begun=False, is_broken=False)
        session: tuple[Any, Any] = self.state, self.branches
        self.retries: Any = Retries(*session, is_read=False, is_ack=is_ack, buffer_s=buffer_s)


async def test_each_shard_is_waited_for_until_the_same_moment():
    shards = Shard(), Shard()
    retries = Case().retries
    assert await retries.again(Ending.UNSENT, *shards)
    assert await retries.again(Ending.READ_ONLY, *shards)
    assert len({moment for shard in shards for moment in shard.deadlines}) == 1
    assert [len(shard.deadlines) for shard in shards] == [2, 2]


async def test_without_a_buffer_or_in_a_transaction_nothing_waits_nor_for_a_shard_that_stays_away():
    shard = Shard()
    assert not await Case(buffer_s=0.0).retries.again(Ending.UNSENT, shard)
    assert shard.deadlines == []
    case = Case()
    case.branches.has_begun = True
    assert await case.retries.again(Ending.READ_ONLY, Shard())
    assert not await case.retries.again(Ending.READ_ONLY, Shard())
    assert not await Case().retries.again(Ending.UNSENT, Shard(comes_back=False))


@pytest.mark.parametrize("autocommit", [True, False])
async def test_an_ack_that_a_deadlock_undid_is_sent_again_if_it_commits_by_itself(autocommit):
    retries = Case(is_ack=True, autocommit=autocommit).retries
    assert await retries.again(Ending.DEADLOCK) is autocommit
