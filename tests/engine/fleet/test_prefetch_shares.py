"""How dispatchers divide a stream's prefetch, by random histories of what they hold."""

import random

import pytest

from streamfrom.engine.fleet.prefetch_shares import PrefetchShares


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

    if dice.random() < 0.5:
        told(shares.idle("a"))
        told(shares.kept("a", max(held["a"], share["a"])))
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


def test_one_that_dispatches_nothing_leaves_all_to_the_only_other():
    shares = PrefetchShares(100, "here")
    assert shares.idle("here") == [("here", 0)]
    assert shares.joined("there") == 0
    shares.kept("there", 0)
    assert shares.kept("here", 0) == [("there", 100)]
