from types import SimpleNamespace

import pytest

from proxy.errors import BackendUnavailable
from proxy.exchange.patience import patiently


AWAY = BackendUnavailable("commerce", "-80", "away")


class Shard:
    """Comes back as often as *returns* says, and answers on the attempt after *failures*."""

    def __init__(self, failures, returns):
        self.failures, self.returns, self.waited_until = failures, returns, []

    async def wait_available(self, deadline):
        self.waited_until.append(deadline)
        return len(self.waited_until) <= self.returns

    async def ask(self):
        if self.failures:
            self.failures -= 1
            raise AWAY
        return "answer"

    async def asked(self, *, in_transaction=False):
        branches = SimpleNamespace(in_transaction=in_transaction)
        executor = SimpleNamespace(deadline=lambda: 7.0, branches=branches)
        return await patiently(executor, self, self.ask)  # type: ignore[arg-type]


async def test_a_shard_is_asked_again_whenever_it_is_back():
    shard = Shard(failures=2, returns=2)
    assert await shard.asked() == "answer"
    assert shard.waited_until == [7.0, 7.0], "one deadline for all attempts"


async def test_one_that_stays_away_is_an_error():
    with pytest.raises(BackendUnavailable):
        await Shard(failures=2, returns=1).asked()


async def test_a_transaction_does_not_wait():
    shard = Shard(failures=1, returns=1)
    with pytest.raises(BackendUnavailable):
        await shard.asked(in_transaction=True)
    assert shard.waited_until == []
