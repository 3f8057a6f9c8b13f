"""Carries out a conversation with a server whose answers are given."""

from dataclasses import replace
from typing import TypeVar

from streamfrom.engine.messaging.store.conversation import Conversation, StoreAnswer, StoreQuery


_Result = TypeVar("_Result")


def answered(
    conversation: Conversation[_Result], *answers: StoreAnswer
) -> tuple[list[StoreQuery], _Result]:
    """Give *answers* in turn, one to each statement; return the statements and the result."""
    queries: list[StoreQuery] = []
    given = iter(answers)
    try:
        query = next(conversation)
        while True:
            queries += (*query.ahead, query)
            ahead = tuple(next(given) for _ in query.ahead)
            query = conversation.send(replace(next(given), ahead=ahead))
    except StopIteration as stop:
        return queries, stop.value


def run(conversation, *answers):
    """Give *answers* in turn, then empty ones; return the result and the statements."""
    sent = []
    given = iter(answers)
    try:
        query = next(conversation)
        while True:
            sent.append(query.sql)
            if query.commits:
                sent.append(b"COMMIT")
            query = conversation.send(next(given, StoreAnswer()))
    except StopIteration as stop:
        return stop.value, sent
