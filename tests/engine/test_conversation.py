import pytest

from streamfrom.engine.conversation import Answer, Conversation, Query


def ask(question: bytes) -> Conversation[int]:
    answer = yield Query(question, 1)
    yield Query(b"COMMIT")
    return len(answer.rows)


def test_a_conversation_is_carried_out_by_whoever_holds_the_connection():
    conversation = ask(b"SELECT 1")
    assert next(conversation) == Query(b"SELECT 1", values=1)
    assert conversation.send(Answer([((b"1",), b"")])) == Query(b"COMMIT")
    with pytest.raises(StopIteration) as stop:
        conversation.send(Answer())
    assert stop.value.value == 1


def test_a_conversation_that_is_given_up_asks_nothing_more():
    conversation = ask(b"SELECT 1")
    next(conversation)
    conversation.close()
    assert list(conversation) == []
