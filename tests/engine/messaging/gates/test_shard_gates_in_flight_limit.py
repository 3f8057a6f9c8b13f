import pytest

from streamfrom.engine.messaging.gates.shard_gates import share


@pytest.mark.parametrize(
    ("limit", "shares"), [(8, [3, 3, 2]), (3, [1, 1, 1]), (100, [34, 33, 33]), (7, [7])]
)
def test_the_shares_are_the_limit(limit, shares):
    assert [share(limit, len(shares), index) for index in range(len(shares))] == shares
    assert sum(shares) == limit
