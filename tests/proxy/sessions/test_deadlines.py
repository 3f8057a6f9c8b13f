import asyncio

import pytest

from streamfrom.proxy.sessions.deadlines import LOOK_S_MIN, SWEEP_S_MAX, Deadlines
from tests.virtual_loop import run_virtual


class Session:
    """What the deadlines see of a session: busy since a moment, or silent since one."""

    def __init__(self, *, busy_at=None, idle_at=None):
        self.busy_at = busy_at
        self.idle_at = idle_at
        self.told = []

    def times(self, now_s):
        busy_s = 0.0 if self.busy_at is None else now_s - self.busy_at
        return busy_s, 0.0 if self.idle_at is None else now_s - self.idle_at

    def time_out(self, now_s):
        self.told.append(("time_out", now_s))

    def leave_idle(self):
        self.told.append("idle")


def made(*sessions, statement_s=0.0, idle_s=0.0):
    return Deadlines(
        dict(enumerate(sessions)),
        statement_s=statement_s,
        idle_s=idle_s,
    )


@pytest.mark.parametrize(
    ("statement_s", "idle_s", "sweep_s"),
    [
        (0, 0, None),
        (2, 0, 0.2),
        (0, 3, 0.3),
        (2, 100, 0.2),
        (0.01, 0, LOOK_S_MIN),
        (0, 28_800, SWEEP_S_MAX),
    ],
)
def test_looks_are_as_frequent_as_the_shortest_limit_wants(statement_s, idle_s, sweep_s):
    assert made(statement_s=statement_s, idle_s=idle_s).sweep_s == sweep_s


def test_without_limits_nothing_runs():
    asyncio.run(made(Session(busy_at=0)).run())


def test_a_statement_is_stopped_once_its_time_is_up():
    session = Session(busy_at=10)
    deadlines = made(session, statement_s=5)
    deadlines.sweep(14.9)
    assert session.told == []
    deadlines.sweep(15)
    assert session.told == [("time_out", 15)]


def test_a_silent_client_is_left_once_its_time_is_up():
    session = Session(idle_at=10)
    deadlines = made(session, idle_s=5)
    deadlines.sweep(14.9)
    assert session.told == []
    deadlines.sweep(15)
    assert session.told == ["idle"]


def test_a_limit_that_is_not_set_concerns_nobody():
    busy, idle = Session(busy_at=0), Session(idle_at=0)
    made(busy, idle, idle_s=5).sweep(100)
    made(busy, idle, statement_s=500).sweep(100)
    assert (busy.told, idle.told) == ([], ["idle"])


def test_all_sessions_are_looked_at_again_and_again():
    async def main():
        busy, idle = Session(busy_at=0), Session(idle_at=0)
        task = asyncio.ensure_future(made(busy, idle, statement_s=10, idle_s=20).run())
        await asyncio.sleep(19.5)
        assert busy.told[0] == ("time_out", pytest.approx(10))
        assert idle.told == []
        await asyncio.sleep(1)
        assert idle.told == ["idle"]
        task.cancel()

    run_virtual(main())
