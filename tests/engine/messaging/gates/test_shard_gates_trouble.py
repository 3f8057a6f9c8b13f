from streamfrom.engine.messaging.gates.shard_gates import (
    LAST_CHANCE_NS,
    RETRY_FIRST_NS,
    RETRY_LAST_NS,
    Trouble,
)


SECOND_NS = 10**9
GRACE_NS = 30 * SECOND_NS
NOW_NS = 10**12


def test_pauses_double_up_to_a_bound():
    trouble, pauses, now_ns = Trouble(), [], NOW_NS
    for _ in range(100):
        trouble.failed("gone", now_ns, 10**15)
        pauses.append(trouble.retry_ns - now_ns)
        now_ns = trouble.retry_ns
    assert pauses[:3] == [RETRY_FIRST_NS, 2 * RETRY_FIRST_NS, 4 * RETRY_FIRST_NS]
    assert max(pauses) == pauses[-1] == RETRY_LAST_NS
    assert trouble.since_ns == NOW_NS


def test_there_is_a_last_try_shortly_before_the_grace_ends():
    trouble, now_ns, tries = Trouble(), NOW_NS, []
    while now_ns < NOW_NS + GRACE_NS:
        trouble.failed("gone", now_ns, GRACE_NS)
        now_ns = trouble.retry_ns
        tries.append(now_ns)
    assert NOW_NS + GRACE_NS - LAST_CHANCE_NS in tries
