"""Who waits for an answer is told once, and never after it has stopped waiting."""

import asyncio
import gc
from unittest.mock import Mock

import pytest

from streamfrom.proxy.backends.answer_readers import (
    AnswerCollector,
    LoginReader,
    PrepareAnswerReader,
)
from streamfrom.proxy.errors import BackendLost
from streamfrom.proxy.net import Link
from streamfrom.proxy.wire.constants import PROXY_OFFER
from streamfrom.proxy.wire.framing import frames
from streamfrom.proxy.wire.prepare_response import prepare_answer


def preparing(finished, link=None):
    return PrepareAnswerReader(finished, link or Mock(spec=Link))


@pytest.fixture
def future():
    loop = asyncio.new_event_loop()
    yield loop.create_future()
    loop.close()


@pytest.mark.parametrize("kind", [AnswerCollector, preparing, LoginReader])
@pytest.mark.parametrize("is_left", [False, True])
def test_a_lost_connection_is_what_a_sender_gets_that_waits(future, kind, is_left):
    reader = kind(future)
    if is_left:
        future.cancel()
    reader.connection_lost(BackendLost("commerce", "0"))
    if is_left:
        reader.answer_completed()
        assert future.cancelled()
    else:
        assert isinstance(future.exception(), BackendLost)


def test_an_answer_that_nobody_reads_any_more_is_not_logged_as_lost():
    """A sender of several commands that is cancelled as the connection is lost reads the first alone."""

    async def lose() -> list[str]:
        logged: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: logged.append(context["message"]))
        AnswerCollector(loop.create_future()).connection_lost(BackendLost("plain", "-"))
        gc.collect()
        return logged

    assert asyncio.run(lose()) == []


def test_an_answer_to_prepare_passes_its_turn_until_it_is_whole(future):
    link = Mock(spec=Link)
    reader = preparing(future, link)
    payloads = prepare_answer(7, [b"?"] * 3, [], capabilities=int(PROXY_OFFER), status=2)
    framed, _ = frames(payloads, 1)
    assert reader.data_received(framed[:-1]) is None
    assert link.pass_turn.call_count == 1
    assert reader.data_received(framed[-1:] + b"next") == b"next"
    assert link.pass_turn.call_count == 1
    reader.answer_completed()
    assert future.result().parameters == [b"?"] * 3
