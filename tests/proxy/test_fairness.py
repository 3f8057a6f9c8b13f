import asyncio

from streamfrom.proxy.fairness import SLICE_S, Slices


class Clock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


async def test_however_many_work_one_slice_is_worked_in_a_turn_of_the_loop():
    clock = Clock()
    worked: list[str] = []
    in_turn = []

    async def work(name):
        slices = Slices(clock)
        for _ in range(5):
            clock.now_s += SLICE_S
            await slices.breathe()
            worked.append(name)

    workers = [asyncio.create_task(work(name)) for name in "abc"]
    while not all(worker.done() for worker in workers):
        before = len(worked)
        await asyncio.sleep(0)
        in_turn.append(len(worked) - before)
    assert max(in_turn) == 1
    # First come, first served: nobody has two slices before each of the others has one.
    assert worked[:6] == list("abcabc")
    assert len(worked) == 15


async def test_a_session_that_is_cancelled_while_it_waits_holds_nobody_up():
    clock = Clock()

    async def work():
        slices = Slices(clock)
        clock.now_s += SLICE_S
        await slices.breathe()
        return "done"

    first, second = asyncio.create_task(work()), asyncio.create_task(work())
    await asyncio.sleep(0)
    first.cancel()
    assert await second == "done"
    assert first.cancelled()
