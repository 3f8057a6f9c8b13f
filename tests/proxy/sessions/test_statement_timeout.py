import asyncio

import pytest

from streamfrom.proxy.sessions.statement_timeout import (
    SWEEP_S_MAX,
    SWEEP_S_MIN,
    StatementTimeout,
)
from tests.virtual_loop import running


class Session:
    """What a sweep sees of a session: busy since a moment, or not."""

    def __init__(self, busy_at=None):
        self.user, self.work = "u", self
        self.busy_at = busy_at
        self.told = []

    def busy_s(self, now_s):
        return 0.0 if self.busy_at is None else now_s - self.busy_at

    def time_out(self, now_s):
        self.told.append(now_s)


def made(*sessions, limit_s=0.0):
    return StatementTimeout(dict(enumerate(sessions)), limit_s)


@pytest.mark.parametrize(
    ("limit_s", "sweep_s"), [(2, 0.2), (0.01, SWEEP_S_MIN), (28_800, SWEEP_S_MAX)]
)
def test_sweeps_are_as_frequent_as_the_limit_wants_and_without_one_nothing_runs(
    limit_s, sweep_s
):
    assert made(limit_s=limit_s).sweep_s == sweep_s
    asyncio.run(made(Session(busy_at=0)).run())


def test_a_statement_is_stopped_once_its_time_is_up():
    session, idle = Session(busy_at=10), Session()
    timeout = made(session, idle, limit_s=5)
    timeout.sweep(14.9)
    assert session.told == []
    timeout.sweep(15)
    assert session.told == [15]
    assert idle.told == []


@running
async def test_all_sessions_are_looked_at_again_and_again():
    first, second = Session(busy_at=0), Session(busy_at=5)
    task = asyncio.ensure_future(made(first, second, limit_s=10).run())
    await asyncio.sleep(15.5)
    assert first.told[0] == pytest.approx(10)
    assert second.told == [pytest.approx(15)]
    task.cancel()
