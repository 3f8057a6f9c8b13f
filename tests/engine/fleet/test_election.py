import pytest

from streamfrom.engine.fleet.election import (
    ANSWER_NS,
    LEASE_NS,
    LOOK_NS,
    PING_NS,
    RETRY_FIRST_NS,
    SECOND_NS,
    AcquireLock,
    Answered,
    BeginDispatch,
    Connect,
    Connected,
    ConnectionLost,
    Disconnect,
    Drained,
    Elapsed,
    Election,
    ElectionRole,
    LockGranted,
    LockHold,
    LockNotGranted,
    LookAround,
    Ping,
    Resign,
    TermRefused,
    TermWritten,
    TurnedReadOnly,
    Withhold,
    WriteTerm,
)


NOW_NS = 10**12


def started():
    election = Election()
    assert election.wake_ns() == 0
    assert election.handle(Elapsed(), NOW_NS) == [Connect(1)]
    return election


def candidate():
    election = started()
    assert election.handle(Connected(1), NOW_NS) == [AcquireLock(1, 0)]
    return election


def elect():
    election = candidate()
    assert election.handle(LockGranted(1, LockHold.BOTH), NOW_NS) == [WriteTerm(1)]
    return election


def dispatcher(term=7):
    election = elect()
    assert election.handle(TermWritten(1, NOW_NS, term), NOW_NS) == [
        BeginDispatch(term),
        LookAround(),
    ]
    return election


def test_the_dispatcher_pings_and_each_answer_is_a_proof_from_its_question_on():
    election, asked_ns, looks = dispatcher(), NOW_NS, 0
    for _ in range(2 * LOOK_NS // PING_NS):
        asked_ns += PING_NS
        assert election.wake_ns() == asked_ns
        ping, *look = election.handle(Elapsed(), asked_ns)
        assert ping == Ping(1)
        looks += look == [LookAround()]
        assert election.handle(Answered(1, asked_ns), asked_ns + 10**6) == []
        assert election.may_send(asked_ns + LEASE_NS - 1)
        assert not election.may_send(asked_ns + LEASE_NS)
    assert looks == 2


@pytest.mark.parametrize(
    "event",
    [Elapsed(), Answered(1, NOW_NS + PING_NS), ConnectionLost(1, "gone"), TurnedReadOnly(1)],
    ids=lambda event: type(event).__name__,
)
def test_a_process_that_was_paused_withholds_before_it_does_anything_else(event):
    election = dispatcher()
    election.handle(Elapsed(), NOW_NS + PING_NS)
    assert not election.may_send(NOW_NS + 20 * SECOND_NS)
    first, *_ = election.handle(event, NOW_NS + 20 * SECOND_NS)
    assert isinstance(first, Withhold)


def test_what_an_earlier_connection_says_counts_no_more():
    election = dispatcher()
    election.handle(ConnectionLost(1, "gone"), NOW_NS + 1)
    assert election.handle(Elapsed(), NOW_NS + 1 + RETRY_FIRST_NS) == [Connect(2)]
    for event in (
        Connected(1),
        LockGranted(1, LockHold.BOTH),
        LockNotGranted(1),
        TermWritten(1, NOW_NS, 9),
        TermRefused(1, "?"),
        Answered(1, NOW_NS),
        TurnedReadOnly(1),
        ConnectionLost(1, "gone"),
    ):
        assert election.handle(event, NOW_NS + 2 + RETRY_FIRST_NS) == []
        assert election.role is ElectionRole.FOLLOWER


def test_a_connection_that_does_not_open_is_given_up_and_one_without_a_term_sends_nothing():
    assert started().handle(Elapsed(), NOW_NS + ANSWER_NS) == [Disconnect(1)]
    election = elect()
    given_up_ns = election.wake_ns()
    assert election.handle(Answered(1, NOW_NS), NOW_NS) == []
    assert election.wake_ns() == given_up_ns
    assert not election.may_send(NOW_NS)


def test_a_term_that_took_too_long_to_write_is_no_right_to_send():
    election = elect()
    late_ns = NOW_NS + LEASE_NS
    assert election.handle(TermWritten(1, NOW_NS, 7), late_ns) == [Ping(1)]
    assert not election.may_send(late_ns)
    assert election.handle(Answered(1, late_ns), late_ns) == [BeginDispatch(7), LookAround()]


def test_one_that_leaves_withholds_and_keeps_the_lock_until_all_is_done():
    election = dispatcher()
    assert election.handle(Resign(), NOW_NS) == [Withhold("the proxy is shutting down")]
    assert election.role is ElectionRole.RESIGNING
    # What is under way still writes on the connection, so it must live.
    assert election.handle(Elapsed(), NOW_NS + PING_NS) == [Ping(1)]
    assert election.handle(Answered(1, NOW_NS + PING_NS), NOW_NS + PING_NS) == []
    assert election.handle(Drained(), NOW_NS + PING_NS + 1) == [Disconnect(1)]
    assert election.wake_ns() is None
    assert election.handle(Elapsed(), NOW_NS + 10**12) == []


@pytest.mark.parametrize("hold", [LockHold.PLAIN, LockHold.SECRET])
def test_who_has_one_name_of_the_lock_waits_unless_it_has_long_known_the_secret(hold):
    election, sole_ns = candidate(), NOW_NS + LEASE_NS
    assert election.handle(LockGranted(1, hold), NOW_NS) == []
    assert election.wake_ns() == sole_ns
    assert election.handle(Elapsed(), sole_ns - 1) == []
    assert election.handle(Elapsed(), sole_ns) == [WriteTerm(1)]
    long_known = candidate().handle(LockGranted(1, hold), sole_ns)
    assert long_known == ([WriteTerm(1)] if hold is LockHold.SECRET else [])
