import time

from streamfrom.engine.clock import SystemClock


def test_the_system_clock_tells_the_time_of_the_machine():
    before = time.time_ns()
    assert before <= SystemClock().time_ns() <= time.time_ns()
