import pytest

from bench.order_audit import Acknowledgement, Arrival, order_audit


KEYS = [[1, 2, 3], [4]]


def ack(id_, sent_ns, answered_ns=None, affected=1):
    return Acknowledgement(id_, sent_ns, answered_ns or sent_ns + 5, affected)


# Message, after, read; then its ack 10 later, its answer 5 after that.
GOOD = [Arrival(1, 0, 10), Arrival(2, 20, 40), Arrival(3, 50, 70), Arrival(4, 0, 15)]
ACKS = [ack(1, 20), ack(2, 50), ack(3, 80), ack(4, 25)]


def violations(arrivals, acks, *, has_deaths=False):
    return list(order_audit(KEYS, arrivals, acks, has_deaths=has_deaths).violations)


def test_one_by_one_is_in_order_and_other_keys_do_not_matter():
    audit = order_audit(KEYS, GOOD, ACKS, has_deaths=False)
    assert (audit.messages, audit.sent_again, audit.violations) == (4, 0, ())


def test_a_message_that_was_read_before_the_ack_of_its_predecessor_was_sent():
    arrivals = [GOOD[0], Arrival(2, 5, 19), *GOOD[2:]]
    assert violations(arrivals, ACKS) == ["2 came before the ack of 1 was sent"]
    # Between sending and answer the dispatcher may have it already.
    assert violations([GOOD[0], Arrival(2, 5, 21), *GOOD[2:]], ACKS) == []


def test_a_predecessor_that_was_never_acknowledged_is_named_and_so_is_what_followed():
    assert violations(GOOD, [ACKS[0], *ACKS[2:]]) == [
        "2 was never delivered, or never acknowledged",
        "3 came before the ack of 2 was sent",
    ]


def test_what_came_again_counts_only_where_nobody_died():
    again = [*GOOD, Arrival(2, 30, 45)]
    assert violations(again, ACKS) == ["2 came 2 times"]
    audit = order_audit(KEYS, again, ACKS, has_deaths=True)
    assert (audit.sent_again, audit.violations) == (1, ())


@pytest.mark.parametrize(
    ("after_ns", "is_late"),
    [(54, False), (55, False), (56, True)],
)
def test_after_its_own_ack_is_what_came_surely_after_the_answer(after_ns, is_late):
    # It was read at 200, long after: only the moment since which it can have come tells.
    again = [*GOOD, Arrival(2, after_ns, 200)]
    assert order_audit(KEYS, again, ACKS, has_deaths=True).read_late == 1
    found = violations(again, ACKS, has_deaths=True)
    assert found == (["2 came after its own ack was answered"] if is_late else [])


def test_the_ack_that_counts_is_the_one_that_changed_the_row():
    lost = Acknowledgement(1, 12, 0, 0)
    acks = [lost, ack(1, 30), *ACKS[1:]]
    early = [GOOD[0], Arrival(2, 14, 25), *GOOD[2:]]
    assert violations(early, acks, has_deaths=True) == ["2 came before the ack of 1 was sent"]
    # Its answer was lost, but it was written: a second one finds nothing to do.
    assert violations(early, [lost, ack(1, 30, affected=0), *ACKS[1:]], has_deaths=True) == []


def test_the_first_violations_are_told():
    audit = order_audit([[1], [2]], [], [], has_deaths=False)
    assert audit.text().startswith("2 of 2 messages: 1 was never delivered")
