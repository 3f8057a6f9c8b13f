import pytest

from streamfrom.engine.messaging.store.conversation import Conversation, StoreAnswer, StoreQuery


def ask(question: bytes) -> Conversation[int]:
    answer = yield StoreQuery(question, 1)
    yield StoreQuery(b"COMMIT")
    return len(answer.rows)


def test_a_conversation_is_carried_out_by_whoever_holds_the_connection():
    conversation = ask(b"SELECT 1")
    assert next(conversation) == StoreQuery(b"SELECT 1", values=1)
    assert conversation.send(StoreAnswer([((b"1",), b"")])) == StoreQuery(b"COMMIT")
    with pytest.raises(StopIteration) as stop:
        conversation.send(StoreAnswer())
    assert stop.value.value == 1
