"""Carries out a conversation with a server whose answers are given."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from streamfrom.engine.messaging.store.conversation import (
    At,
    Conversation,
    ServerRefused,
    StoreAnswer,
    StoreQuery,
)
from tests.sim.memory_store import answer


_Result = TypeVar("_Result")


def at(now_ns: int = 0) -> At:
    """Return where and when a job runs."""
    return At("0", now_ns, is_elected=True)


def carry_out(
    conversation: Conversation[_Result], answer_to: Callable[[StoreQuery], StoreAnswer]
) -> _Result:
    """Return the result of a conversation whose statements *answer_to* answers, or refuses by raising."""
    try:
        query = next(conversation)
        while True:
            try:
                found = answer_to(query)
            except ServerRefused as refused:
                query = conversation.throw(refused)
            else:
                query = conversation.send(found)
    except StopIteration as stop:
        result: _Result = stop.value
        return result


def answered(
    conversation: Conversation[_Result], *answers: StoreAnswer
) -> tuple[list[StoreQuery], _Result]:
    """Give *answers* in turn, one to each statement; return the statements and the result."""
    queries: list[StoreQuery] = []
    given = iter(answers)

    def answer_to(query):
        queries.extend((*query.ahead, query))
        ahead = tuple(next(given) for _ in query.ahead)
        return replace(next(given), ahead=ahead)

    return queries, carry_out(conversation, answer_to)


def lenient(conversation, *answers):
    """Give *answers* in turn, errors among them, then empty ones; return the result and the queries."""
    queries, given = [], iter(answers)

    def answer_to(query):
        queries.append(query)
        found = next(given, StoreAnswer())
        if isinstance(found, Exception):
            raise found
        return found

    return carry_out(conversation, answer_to), queries


def run(conversation, *answers):
    """Give *answers* in turn, then empty ones; return the result and the statements."""
    result, queries = lenient(conversation, *answers)
    sent = [(query.sql, b"COMMIT") if query.commits else (query.sql,) for query in queries]
    return result, [sql for each in sent for sql in each]


def from_memory(table, conversation, rows):
    """Answer the questions of a poll by what *rows* are; return its result and the queries."""
    queries = []

    def answer_to(query):
        queries.append(query)
        return StoreAnswer(answer(table, query.sql, list(rows)))

    return carry_out(conversation, answer_to), queries
