"""Who waits for an answer is told once, and never after it has stopped waiting."""

import asyncio
import gc
from unittest.mock import Mock

import pytest

from streamfrom.proxy.backends.answer_readers import (
    Awaited,
    PrepareAnswerReader,
)
from streamfrom.proxy.errors import BackendLost
from streamfrom.proxy.net import Link
from streamfrom.proxy.wire.constants import PROXY_OFFER
from streamfrom.proxy.wire.framing import frames
from streamfrom.proxy.wire.prepare_response import prepare_answer


def preparing(link=None):
    return PrepareAnswerReader(link or Mock(spec=Link))


@pytest.mark.parametrize("is_left", [False, True])
async def test_a_lost_connection_is_what_a_sender_gets_that_waits(is_left):
    reader = preparing()
    if is_left:
        reader.future.cancel()
    reader.connection_lost(BackendLost("commerce", "0"))
    if is_left:
        reader.answer_completed()
        assert reader.future.cancelled()
    else:
        assert isinstance(reader.future.exception(), BackendLost)


async def test_an_answer_that_nobody_reads_any_more_is_not_logged_as_lost():
    """A sender that is cancelled as the connection is lost reads nothing."""
    logged: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: logged.append(context["message"]))
    Awaited().fail(BackendLost("plain", "-"))
    gc.collect()
    assert logged == []


async def test_an_answer_to_prepare_passes_its_turn_until_it_is_whole():
    link = Mock(spec=Link)
    reader = preparing(link)
    payloads = prepare_answer(7, [b"?"] * 3, [], capabilities=int(PROXY_OFFER), status=2)
    framed, _ = frames(payloads, 1)
    assert reader.data_received(framed[:-1]) is None
    assert link.pass_turn.call_count == 1
    assert reader.data_received(framed[-1:] + b"next") == b"next"
    assert link.pass_turn.call_count == 1
    reader.answer_completed()
    assert reader.future.result().parameters == [b"?"] * 3
