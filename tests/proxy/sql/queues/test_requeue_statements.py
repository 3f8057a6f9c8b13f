"""How many messages REQUEUE takes at a time; the rest is tried with servers in tests/integration/queues/test_requeue.py."""

import ast

from streamfrom.proxy.sql.queues.requeue_statements import batch_size
from streamfrom.sqlparse_ext.reading.queues import Requeue
from tests.cases import cases


@cases(
    limit=ast.literal_eval, rate=ast.literal_eval, count=ast.literal_eval, size=ast.literal_eval
)
def test_a_batch_is_within_the_limit_and_a_fifth_of_a_second(limit, rate, count, size):
    assert batch_size(Requeue("PARKED", limit, rate), count) == size
