import pytest

from streamfrom.engine.messaging.table.backoff import PARKED_NS, is_spent
from streamfrom.engine.messaging.table.table_settings import WAIT_MAX_NS, parse_comment
from tests.sim.memory_store import DEFAULT_COMMENT


NOW_NS = 1_800_000_000 * 10**9


@pytest.mark.parametrize(
    ("limit", "epoch", "spent"),
    [(3, 0, False), (3, 2, False), (3, 3, True), (3, 9, True), (1, 0, False), (1, 1, True)],
)
def test_as_many_claims_as_the_limit_are_enough(limit, epoch, spent):
    properties = parse_comment(f"{DEFAULT_COMMENT},vt_max_attempts={limit}")
    assert is_spent(properties, epoch) is spent


@pytest.mark.parametrize("more", ["", ",vt_max_attempts=0", ",vt_max_attempts="])
def test_without_a_limit_nothing_is_spent(more):
    assert not is_spent(parse_comment(DEFAULT_COMMENT + more), 2**62)


def test_no_wait_reaches_the_moment_of_what_is_parked_and_a_bigint_holds_it():
    assert NOW_NS + WAIT_MAX_NS < PARKED_NS < 2**63
