"""What holds between the times of an election; its course is tests/engine/fleet/test_elector.py."""

from streamfrom.engine.fleet.election import ANSWER_NS, LEASE_NS, PING_NS, SECOND_NS, SILENCE_S


def test_a_dispatcher_is_silent_before_the_server_frees_its_lock_and_two_lost_pings_are_no_reason():
    assert 3 * PING_NS < LEASE_NS < SILENCE_S * SECOND_NS < ANSWER_NS
