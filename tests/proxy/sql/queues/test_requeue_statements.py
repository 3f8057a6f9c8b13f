"""How many messages REQUEUE takes at a time; the rest is tried with servers in tests/integration/queues/test_requeue.py."""

import pytest

from streamfrom.proxy.sql.queues.requeue_statements import batch_size
from streamfrom.sqlparse_ext.reading.queues import Requeue


@pytest.mark.parametrize(
    ("limit", "rate", "count", "size"),
    [
        (None, None, 5000, 1000),
        (30, None, 0, 30),
        (2500, None, 2000, 500),
        (None, 100, 0, 20),
        (None, 0.5, 7, 1),
        (None, 1e9, 0, 1000),
        (3, 100, 1, 2),
    ],
)
def test_a_batch_is_within_the_limit_and_a_fifth_of_a_second(limit, rate, count, size):
    assert batch_size(Requeue("PARKED", limit, rate), count) == size
