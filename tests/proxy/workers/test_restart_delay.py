from itertools import accumulate

from streamfrom.proxy.workers.restart_delay import (
    FIRST_S,
    LONGEST_S,
    SETTLED_S,
    restart_delay_s,
)


def test_who_dies_again_and_again_waits_longer_up_to_a_limit_unless_it_has_run_long():
    lives = [1.0] * 12
    delays = list(accumulate(lives, restart_delay_s, initial=0.0))[1:]
    assert delays[:4] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S, 8 * FIRST_S]
    assert delays[-1] == LONGEST_S
    assert delays == sorted(delays)
    assert restart_delay_s(LONGEST_S, SETTLED_S) == FIRST_S
