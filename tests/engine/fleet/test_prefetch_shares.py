"""How dispatchers divide a stream's prefetch: by examples, and by random histories of what they hold."""

import random

import pytest

from streamfrom.engine.fleet.prefetch_shares import PrefetchShares


def answer(shares, changes, told):
    """Answer *changes*, and those that come of it, and note the shares that were told."""
    changes = list(changes)
    while changes:
        name, share = changes.pop(0)
        told[name] = share
        changes += shares.kept(name, share)


def test_one_that_has_nothing_to_give_keeps_nobody_from_giving():
    shares, told = PrefetchShares(5, "a"), {"a": 5}
    told["b"], told["c"] = shares.joined("b"), shares.joined("c")
    answer(shares, [*shares.kept("b", 0), *shares.kept("c", 0)], told)
    for _ in range(4):
        answer(shares, shares.wanted("a"), told)
    assert told == {"a": 5, "b": 0, "c": 0}
    answer(shares, shares.wanted("b"), told)
    assert told == {"a": 2, "b": 3, "c": 0}


def test_a_prefetch_of_one_goes_from_one_to_the_other():
    shares = PrefetchShares(1, "a")
    assert shares.joined("b") == 0
    assert shares.kept("b", 0) == [("a", 0)]
    # Its message is worked on; only then it answers.
    assert shares.wanted("a") == []
    assert shares.kept("a", 0) == [("b", 1)]
    assert shares.kept("b", 0) == [("b", 0)]
    assert shares.kept("b", 0) == [("a", 1)]


def test_what_one_holds_of_more_than_its_share_is_nobodys_yet():
    shares = PrefetchShares(10, "a")
    shares.joined("b")
    assert shares.kept("b", 0) == [("a", 5)]
    assert shares.kept("a", 8) == [("b", 2)]
    assert shares.kept("b", 2) == []
    assert shares.wanted("b") == []
    assert shares.kept("a", 7) == [("b", 3)]


@pytest.mark.parametrize("seed", range(60))
def test_together_they_hold_no_more_than_the_prefetch_and_nobody_starves(seed):
    dice = random.Random(seed)
    prefetch = dice.choice([1, 2, 3, 7, 100])
    names = ["a", "b", "c", "d"][: dice.randint(2, 4)]
    shares = PrefetchShares(prefetch, "a")
    share, held, due, served = {"a": prefetch}, dict.fromkeys(names, 0), set(names), set()
    owes: set[str] = set()
    has_wanted: set[str] = set()

    def send(name):
        held[name] += 1
        served.add(name)

    def told(changes):
        for name, most in changes:
            share[name] = most
            owes.add(name)
            has_wanted.discard(name)
            if name in due and held[name] < most:
                send(name)

    for name in names[1:]:
        share[name] = shares.joined(name)
        owes.add(name)
    for step in range(600):
        name = dice.choice(names)
        if step % 50 == 0:
            due = {one for one in names if dice.random() < 0.7}
        if name in due and held[name] < share[name]:
            send(name)
        elif held[name] and dice.random() < 0.5:
            held[name] -= 1
        assert sum(held.values()) <= prefetch
        for one in names:
            if one in owes:
                if held[one] <= share[one]:
                    owes.discard(one)
                told(shares.kept(one, max(held[one], share[one])))
        for one in names:
            if one in due and held[one] >= share[one] < prefetch and one not in has_wanted:
                has_wanted.add(one)
                told(shares.wanted(one))
    assert served == set(names)
