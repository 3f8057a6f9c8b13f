import pytest

from streamfrom.engine.messaging.dispatch.poll_times import PollTimes
from streamfrom.engine.messaging.queue.poll import PollResult
from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
from tests.engine.messaging.queue.test_shard_queue import tier


SECOND_NS = 10**9
NOW_NS = 10**12
INTERVAL_NS = 5 * SECOND_NS


def begun():
    made = PollTimes(ShardQueue(10))
    made.begin(NOW_NS)
    return made


def test_the_interval_counts_from_the_start_of_a_poll():
    made = begun()
    made.start(NOW_NS)
    made.finished(PollResult(()), NOW_NS + SECOND_NS, INTERVAL_NS)
    assert made.start(NOW_NS + INTERVAL_NS - 1) is None
    assert made.start(NOW_NS + INTERVAL_NS) is not None


def test_polls_that_changes_want_rest_as_long_as_the_last_one_took():
    made = begun()
    made.start(NOW_NS)
    made.finished(PollResult(()), NOW_NS + SECOND_NS, INTERVAL_NS)
    made.wanted = True
    assert made.start(NOW_NS + 2 * SECOND_NS - 1) is None
    assert made.start(NOW_NS + 2 * SECOND_NS) is not None


def test_a_poll_under_way_when_the_first_stream_opens_is_followed_by_another():
    made = begun()
    made.start(NOW_NS)
    made.begin(NOW_NS)
    made.finished(PollResult(()), NOW_NS, INTERVAL_NS)
    assert made.start(NOW_NS) is not None


class Order:
    """Keys of which a message has to wait."""

    def passed_over(self, _now_ns):
        return (b"7",)


@pytest.mark.parametrize(("order", "passed_over"), [(None, ()), (Order(), (b"7",))])
@pytest.mark.parametrize("is_wanted", [False, True])
def test_an_interval_alone_reads_a_long_queue_in_parts(order, passed_over, is_wanted):
    queue = ShardQueue(10)
    queue.span_keys = 2
    made = PollTimes(queue)
    made.begin(NOW_NS)
    made.start(NOW_NS)
    made.finished(PollResult((tier(fresh=range(5)),)), NOW_NS, INTERVAL_NS)
    made.wanted, made.named_wanted = (
        is_wanted,
        True,
    )  # after each claim, where messages wait for others
    request = made.start(NOW_NS + INTERVAL_NS, order, in_spans=True)
    assert request is not None
    assert (request.spans is None, request.passed_over) == (is_wanted, passed_over)
