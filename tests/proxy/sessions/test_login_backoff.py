from itertools import pairwise

from streamfrom.proxy.sessions.login_backoff import REMEMBERED_MAX, LoginBackoff


HERE, THERE = "10.0.0.1", "10.0.0.2"


def failures(backoff, number, *, address=HERE, user="eve", now_s=0.0):
    return [backoff.failed(address, user, now_s) for _ in range(number)]


def test_the_first_failures_are_free_and_then_each_waits_twice_as_long_up_to_a_bound():
    assert failures(LoginBackoff(2.0), 9) == [0, 0, 0, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
    assert failures(LoginBackoff(2.0), 2000)[-1] == 2.0, "it never overflows"
    assert set(failures(LoginBackoff(0), 50)) == {0}, "without a bound nobody waits"


def test_a_good_login_waits_only_if_this_user_has_failed_from_here():
    backoff = LoginBackoff(2.0)
    failures(backoff, 20)
    assert backoff.failed(THERE, "eve", 0) == backoff.turn(THERE, "eve", 0) == 0
    assert backoff.turn(HERE, "app", 0) == 0
    assert backoff.turn(HERE, "eve", 0) == 2.0
    # Who has got in is trusted again; the address is not.
    backoff.succeeded(HERE, "eve")
    assert backoff.turn(HERE, "eve", 0) == 0
    assert backoff.failed(HERE, "mallory", 0) == 2.0


def test_of_too_many_the_oldest_are_forgotten():
    backoff = LoginBackoff(2.0)
    failures(backoff, 5)
    for number in range(REMEMBERED_MAX):
        backoff.failed(f"10.{number}", "eve", 0)
    assert backoff.failed(HERE, "eve", 0) == 0
    assert len(backoff) <= REMEMBERED_MAX


def test_guesses_at_once_are_looked_at_one_after_another():
    backoff = LoginBackoff(2.0)
    failures(backoff, 4)
    turns = [backoff.turn(HERE, "eve", 0) for _ in range(100)]
    apart = [later - sooner for sooner, later in pairwise(turns)]
    assert turns[0] == 0.1
    assert [round(each, 1) for each in apart[:5]] == [0.2, 0.4, 0.8, 1.6, 2.0]
    assert all(each > 1.99 for each in apart[4:])
    assert backoff.turn(HERE, "app", 0) == 0
    assert backoff.turn(THERE, "eve", 0) == 0


def test_one_who_has_waited_for_its_turn_waits_for_its_answer_no_more_than_the_rest():
    backoff = LoginBackoff(2.0)
    failures(backoff, 4)
    waited_s = backoff.turn(HERE, "eve", 0)
    assert backoff.failed(HERE, "eve", waited_s, waited_s) == 0.1
    assert round(backoff.turn(HERE, "eve", waited_s), 6) == 0.2, "counted once"
