"""Who waits for an answer is told once, and never after it has stopped waiting."""

import asyncio

import pytest

from streamfrom.proxy.backends.answer_readers import (
    AnswerCallback,
    AnswerCollector,
    DiscardedAnswer,
    LoginReader,
    PrepareAnswerReader,
)
from streamfrom.proxy.errors import BackendLost
from streamfrom.proxy.wire.constants import PROXY_OFFER
from streamfrom.proxy.wire.framing import frame
from streamfrom.proxy.wire.resultset import err_packet, ok_packet


OK = frame(ok_packet(affected_rows=3, status=2, capabilities=int(PROXY_OFFER)), 1)


@pytest.fixture
def future():
    loop = asyncio.new_event_loop()
    yield loop.create_future()
    loop.close()


@pytest.mark.parametrize("cut", range(len(OK) + 1))
def test_a_whole_answer_is_collected_however_it_is_cut(future, cut):
    reader = AnswerCollector(future)
    rest = reader.feed(OK[:cut])
    if rest is None:
        rest = reader.feed(OK[cut:] + b"next")
        assert rest == b"next"
    reader.ended()
    assert future.result().ok.affected_rows == 3
    assert future.result().error is None


@pytest.mark.parametrize("kind", [AnswerCollector, PrepareAnswerReader, LoginReader])
def test_a_lost_connection_is_what_the_sender_gets(future, kind):
    kind(future).lost(BackendLost("commerce", "0"))
    assert isinstance(future.exception(), BackendLost)


@pytest.mark.parametrize("kind", [AnswerCollector, PrepareAnswerReader, LoginReader])
def test_a_sender_that_stopped_waiting_is_left_alone(future, kind):
    future.cancel()
    reader = kind(future)
    reader.lost(BackendLost("commerce", "0"))
    reader.ended()
    assert future.cancelled()


def test_a_greeting_that_comes_before_its_conversation_is_kept(future):
    login = LoginReader(future)
    assert login.feed(b"early") is None
    assert login.early == b"early"


def test_a_login_takes_bytes_until_it_has_succeeded(future):
    login = LoginReader(future)
    login.conversation = lambda data: login.succeed(None) if data == b"ok" else None
    assert login.feed(b"more") is None
    assert login.feed(b"ok") == b""


def told(reader_of):
    """What a function is told of an answer, and of what prevents one."""
    seen = []
    return reader_of(lambda answer: seen.append(answer.ok), lambda: seen.append("missed")), seen


def test_a_function_hears_a_good_answer():
    reader, seen = told(AnswerCallback)
    assert reader.feed(OK + b"next") == b"next"
    reader.ended()
    assert seen[0].affected_rows == 3


def test_a_function_hears_that_there_is_no_good_answer():
    refused, seen = told(AnswerCallback)
    refused.feed(frame(err_packet(1317, "70100", "interrupted", int(PROXY_OFFER)), 1))
    refused.ended()
    lost, also_seen = told(AnswerCallback)
    lost.lost(BackendLost("commerce", "0"))
    assert seen == also_seen == ["missed"]


def test_what_nobody_wants_has_no_end():
    reader = DiscardedAnswer()
    assert reader.feed(OK + b"next") is None
    reader.lost(BackendLost("ks", "-"))
