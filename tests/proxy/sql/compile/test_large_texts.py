"""Large texts are read in threads, and a reading that nobody waits for any more stops."""

import asyncio
import threading
import time

import pytest

from streamfrom.proxy.errors import QueryInterrupted
from streamfrom.proxy.fairness import SLICE_S
from streamfrom.proxy.sql.compile.large_texts import AT_ONCE, LargeTexts, readers, size_of
from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE
from streamfrom.sqlparse_ext.text.chunks import LARGE_TEMPLATE_BYTES, LARGE_TEXT_BYTES, pause


LARGE = LARGE_TEXT_BYTES + 1


@pytest.fixture
def threads():
    made = readers()
    yield made
    made.shutdown()


class Reading:
    """A reading that goes on until it is told to end, or stopped between two chunks."""

    def __init__(self):
        self.began = threading.Event()
        self.may_end = threading.Event()
        self.stopped = threading.Event()

    def __call__(self):
        self.began.set()
        try:
            while not self.may_end.wait(0.001):
                pause()
        except BaseException:
            self.stopped.set()
            raise
        return "read"


async def until(event):
    assert await asyncio.to_thread(event.wait, 10)


async def test_an_interrupt_ends_the_wait_with_its_error_and_the_reading_at_its_next_chunk(
    threads,
):
    large_texts, reading = LargeTexts(threads), Reading()
    assert not large_texts.interrupt(QueryInterrupted())
    task = asyncio.create_task(large_texts.read(LARGE, reading))
    await until(reading.began)
    assert large_texts.interrupt(QueryInterrupted())
    with pytest.raises(QueryInterrupted):
        await task
    await until(reading.stopped)
    assert not large_texts.interrupt(QueryInterrupted())
    assert await large_texts.read(LARGE, lambda: "next") == "next"


async def test_only_so_many_are_read_at_once_and_who_waits_may_be_interrupted(threads):
    under_way = [Reading() for _ in range(AT_ONCE)]
    tasks = [asyncio.create_task(LargeTexts(threads).read(LARGE, each)) for each in under_way]
    for each in under_way:
        await until(each.began)
    waiting, late = LargeTexts(threads), Reading()
    task = asyncio.create_task(waiting.read(LARGE, late))
    await asyncio.sleep(0.01)
    assert not late.began.is_set()
    assert waiting.interrupt(QueryInterrupted())
    with pytest.raises(QueryInterrupted):
        await task
    for each in under_way:
        each.may_end.set()
    assert await asyncio.gather(*tasks) == ["read"] * AT_ONCE
    assert not late.began.is_set()


class Target:
    """A session's target that notes which thread reads."""

    def __init__(self):
        self.cache, self.threads = StatementCache(), []

    def parse(self, sql, template_max=None):
        statement = self.cache.get(sql, DEFAULT_MODE, template_max)
        self.threads.append(threading.get_ident())
        return statement


async def test_the_loop_reads_what_is_short_or_known_and_threads_read_the_rest(threads):
    long = b"SELECT " + b"+".join(b"a%d" % n for n in range(LARGE_TEMPLATE_BYTES))[:20_000]
    of_literals = b"SELECT 1 IN (%b)" % b",".join([b"1"] * (LARGE_TEXT_BYTES // 4))
    large = b"SELECT " + b"1," * LARGE_TEXT_BYTES + b"1"
    target, texts, here = Target(), LargeTexts(threads), threading.get_ident()
    for sql in (b"SELECT 1", of_literals, long, long, large, large):
        assert (await texts.parse(target.parse, sql)).sql == sql
    assert [each == here for each in target.threads] == [True, True, False, True, False, False]
    sizes = [size_of(target.parse(sql)) for sql in (b"SELECT 1", of_literals, long, large)]
    assert [size > LARGE_TEXT_BYTES for size in sizes] == [False, False, True, True]


async def test_others_have_a_turn_between_two_readings_on_the_loop(threads):
    others: list[str] = []
    asyncio.get_running_loop().call_soon(others.append, "came in")
    await LargeTexts(threads).read(1, time.sleep, 2 * SLICE_S)
    assert others
