import asyncio
import gc
from typing import Any

import pytest

from streamfrom.proxy.sessions.login_work import ADDRESSES_AT_ONCE, LoginWork


def pieces(log, name, number, result=None):
    for _ in range(number):
        log.append(name)
        yield
    return result


async def test_the_loop_goes_on_between_the_pieces():
    work = LoginWork()
    log: list[Any] = []

    async def other():
        for _ in range(5):
            log.append("other")
            await asyncio.sleep(0)

    others = asyncio.ensure_future(other())
    assert await work.done(pieces(log, "work", 5, "done")) == "done"
    await others
    assert log[:6] in (["work", "other"] * 3, ["other", "work"] * 3)


async def test_an_address_has_one_turn_at_a_time_in_the_order_of_asking():
    work = LoginWork()
    log: list[Any] = []

    def login(address, number):
        return work.judged(address, pieces(log, (address, number), 3), lambda: 0.0)

    await asyncio.gather(*(login(address, n) for n in range(3) for address in "ab"))
    assert [entry for entry in log if entry[0] == "a"] == [
        ("a", n) for n in (0, 0, 0, 1, 1, 1, 2, 2, 2)
    ]
    assert log.index(("b", 0)) < log.index(("a", 1)), "addresses do not wait for each other"
    assert len(work) == 0


async def test_so_many_addresses_work_at_a_time():
    work = LoginWork()
    log: list[Any] = []
    names = range(2 * ADDRESSES_AT_ONCE)
    await asyncio.gather(*(work.done(pieces(log, name, 3)) for name in names))
    first = log[: 3 * ADDRESSES_AT_ONCE]
    assert set(first) == set(range(ADDRESSES_AT_ONCE))


async def test_work_that_fails_or_is_given_up_leaves_its_place():
    def failing():
        yield
        raise ValueError("no")

    work = LoginWork()
    for _ in range(2 * ADDRESSES_AT_ONCE):
        with pytest.raises(ValueError, match="no"):
            await work.judged("a", failing(), lambda: 0.0)
    log: list[Any] = []
    working, waiting = (
        asyncio.ensure_future(work.judged("a", pieces(log, number, 3), lambda: 0.0))
        for number in range(2)
    )
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await working
    assert set(log) == {0}
    del working, waiting
    await asyncio.sleep(0)
    gc.collect()  # what tracebacks keep
    assert len(work) == 0
    assert await work.done(pieces([], "x", 1, 5)) == 5
