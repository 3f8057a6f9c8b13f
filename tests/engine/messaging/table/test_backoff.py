from hypothesis import given, strategies as st

from streamfrom.engine.messaging.table.backoff import DICE_BITS, WaitRange, spread, wait_range
from streamfrom.engine.messaging.table.table_settings import WAIT_MAX_NS, parse_comment


SECOND_NS = 10**9
TOP = (1 << DICE_BITS) - 1


def properties(ack_wait, *, low=None, high=None):
    return parse_comment(
        f"vitess_message,vt_ack_wait={ack_wait},vt_purge_after=1,vt_batch_size=1,"
        "vt_cache_size=1,vt_poller_interval=1"
        + (f",vt_min_backoff={low}" if low else "")
        + (f",vt_max_backoff={high}" if high else "")
    )


def seconds(window):
    return window.low_ns / SECOND_NS, (window.low_ns + window.span_ns) / SECOND_NS


def test_the_wait_doubles_with_every_send():
    table = properties(30)
    assert [seconds(wait_range(table, epoch)) for epoch in range(4)] == [
        (30, 40),
        (60, 80),
        (120, 160),
        (240, 320),
    ]


def test_the_first_wait_is_at_least_ack_wait_even_above_the_maximum():
    table = properties(30, high=5)
    assert seconds(wait_range(table, 0)) == (30, 40)
    assert seconds(wait_range(table, 1)) == (3.75, 5)


def test_no_epoch_is_too_large():
    assert wait_range(properties(1), 10**9) == WaitRange(WAIT_MAX_NS * 3 // 4, WAIT_MAX_NS // 4)
    assert seconds(wait_range(properties(30, high=3600), 2**63)) == (2700, 3600)


@given(
    ack_wait=st.floats(0.001, 1e5),
    low=st.none() | st.floats(0.001, 1e6),
    high=st.none() | st.floats(0.001, 1e6),
    epoch=st.integers(0, 200),
    dice=st.integers(0, TOP),
)
def test_every_wait_is_within_the_bounds_of_the_contract(ack_wait, low, high, epoch, dice):
    table = properties(ack_wait, low=low, high=high)
    wait_ns = spread(wait_range(table, epoch), dice)
    high_ns = table.max_backoff_ns or WAIT_MAX_NS
    base_ns = min(max(table.ack_wait_ns * 2**epoch, table.min_backoff_ns), high_ns)
    if epoch == 0:
        base_ns = max(base_ns, table.ack_wait_ns)
    if base_ns > high_ns:
        assert base_ns <= wait_ns <= base_ns * 4 // 3
    elif base_ns * 4 // 3 > high_ns:
        assert high_ns * 3 // 4 <= wait_ns <= high_ns
    else:
        assert base_ns <= wait_ns <= base_ns * 4 // 3
