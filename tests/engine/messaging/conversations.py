"""Carries out a conversation with a server whose answers are given."""

from dataclasses import replace
from itertools import chain
from typing import TypeVar

from streamfrom.engine.messaging.store.conversation import Conversation, StoreAnswer, StoreQuery
from tests.sim.memory_store import answer


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


def lenient(conversation, *answers):
    """Give *answers* in turn, errors among them, then empty ones; return the result and the queries."""
    queries = []
    given = iter(answers)
    try:
        query = next(conversation)
        while True:
            queries.append(query)
            answer = next(given, StoreAnswer())
            is_error = isinstance(answer, Exception)
            query = conversation.throw(answer) if is_error else conversation.send(answer)
    except StopIteration as stop:
        return stop.value, queries


def run(conversation, *answers):
    """Give *answers* in turn, then empty ones; return the result and the statements."""
    result, queries = lenient(conversation, *answers)
    sent = [(query.sql, b"COMMIT") if query.commits else (query.sql,) for query in queries]
    return result, [*chain.from_iterable(sent)]


def from_memory(conversation, rows):
    """Answer the questions of a poll by what *rows* are; return its result and the queries."""
    queries = []
    try:
        query = next(conversation)
        while True:
            queries.append(query)
            query = conversation.send(StoreAnswer(answer(query.about, list(rows))))
    except StopIteration as stop:
        return stop.value, queries
