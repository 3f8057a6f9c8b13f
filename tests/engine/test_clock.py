import asyncio
import time

from streamfrom.engine.clock import SystemClock, WakeTimer
from tests.virtual_loop import VirtualClock


def test_the_system_clock_tells_the_time_of_the_machine():
    before = time.time_ns()
    assert before <= SystemClock().time_ns() <= time.time_ns()


async def test_a_timer_wakes_at_the_earliest_moment_and_once_for_it():
    clock, woken_s = VirtualClock(), []
    loop = asyncio.get_running_loop()
    begin_s, begin_ns = loop.time(), clock.time_ns()
    timer = WakeTimer(loop, clock.time_ns, lambda: woken_s.append(round(loop.time() - begin_s)))
    for second in (7, 3, 5):
        timer.set(begin_ns + second * 10**9)
    await asyncio.sleep(60)
    assert woken_s == [3]
    timer.set(begin_ns)  # which is over
    await asyncio.sleep(1)
    assert woken_s == [3, 60]
    timer.set(clock.time_ns() + 10**9)
    timer.set(None)
    timer.cancel()
    timer.cancel()
    await asyncio.sleep(60)
    assert woken_s == [3, 60]
