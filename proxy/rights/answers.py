"""How long an answer about a right holds. Pure: times go in, decisions come out.

An answer is fresh for KEPT_S from when it was asked, unless `forget` came between: the grants may have changed. A permission
that is no longer fresh stands for the grace as long as the server cannot be asked; a refusal does not, since it is asked again.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, NamedTuple, TypeVar


KEPT_S: Final = 30.0
# So many answers are kept; when there are more, the oldest go.
ANSWERS_MAX: Final = 50_000

K = TypeVar("K", bound="Hashable")
T = TypeVar("T")


class Answer(NamedTuple, Generic[T]):
    """An answer of a server."""

    value: T  # what it is
    asked_s: float  # when it was asked
    generation: int  # how often `forget` had been called by then


class Answers(Generic[K, T]):
    """The answers to questions *K*.

    Attributes:
        generation: how often `forget` has been called.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._answers: dict[K, Answer[T]] = {}

    def fresh(self, key: K, now_s: float) -> Answer[T] | None:
        """Return the answer if it needs no new question."""
        found = self._answers.get(key)
        if (
            found is None
            or found.generation != self.generation
            or now_s - found.asked_s >= KEPT_S
        ):
            return None
        return found

    def last(self, key: K, now_s: float, grace_s: float) -> Answer[T] | None:
        """Return the answer that stands in for one that cannot be had for *grace_s*."""
        found = self._answers.get(key)
        return None if found is None or now_s - found.asked_s >= KEPT_S + grace_s else found

    def has(self, key: K) -> bool:
        """Return whether there is an answer, however old."""
        return key in self._answers

    def keep(self, key: K, answer: Answer[T]) -> None:
        """Keep the latest answer."""
        before = self._answers.pop(key, None)
        if before is not None and before.asked_s > answer.asked_s:
            answer = before
        self._answers[key] = answer
        if len(self._answers) > ANSWERS_MAX:
            del self._answers[next(iter(self._answers))]

    def forget(self) -> None:
        """Have everything asked again."""
        self.generation += 1

    def __len__(self) -> int:
        return len(self._answers)
