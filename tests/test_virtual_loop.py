import asyncio

import pytest

from tests.virtual_loop import START_NS, Deadlock, VirtualClock, run_virtual


def test_an_hour_takes_a_moment_and_timers_keep_their_order():
    async def main():
        heard: list[str] = []
        loop = asyncio.get_running_loop()
        loop.call_later(3600, heard.append, "late")
        loop.call_later(5, heard.append, "early")
        await asyncio.sleep(3601)
        assert loop.time() == pytest.approx(3601)
        return heard

    assert run_virtual(main()) == ["early", "late"]


def test_the_wall_clock_follows():
    async def main():
        clock = VirtualClock()
        before_ns = clock.time_ns()
        await asyncio.sleep(1.5)
        return before_ns, clock.time_ns()

    assert run_virtual(main()) == (START_NS, START_NS + 1_500_000_000)


def test_waiting_for_nothing_is_a_deadlock_and_no_hang():
    async def main():
        await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        run_virtual(main())
