"""Test cases from a text file next to the tests, one per line: `test_split.txt` beside `test_split.py`.

    == a semicolon ends a statement         the section of test_a_semicolon_ends_a_statement
    # the point of the next case
    SELECT 1; SELECT 2 → [8]                a value for each parameter; a missing one is None

A value that cannot stand in a line, or would be read as something else, is a Python literal after a backslash.
"""

import ast
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

import pytest


Test = Callable[..., Any]
Rows = list[list[str]]


def cases(**parameters: Callable[[str], Any]) -> Callable[[Test], Test]:
    """Run a test for each case of its section: all in one test if it needs no fixtures.

    parameters: by name, the function that makes a value from the text: `str`, `str.encode`, `ast.literal_eval`.
    """

    def decorate(test: Test) -> Test:
        rows = sections(Path(inspect.getfile(test)).with_suffix(".txt"))[test.__name__]
        values = [
            [
                None if text is None else _value(text, make)
                for text, make in zip_longest(row, parameters.values())
            ]
            for row in rows
        ]
        ids = [row[0] for row in rows]
        parametrized: Test = pytest.mark.parametrize(tuple(parameters), values, ids=ids)(test)
        # Pytest's overhead per test is larger than most of these tests.
        asks = inspect.signature(test).parameters.keys() - parameters.keys()
        return (
            parametrized if asks or inspect.iscoroutinefunction(test) else in_turn(parametrized)
        )

    return decorate


def in_turn(test: Test) -> Test:
    """Run all cases of a parametrized test one after the other, with fixtures made once.

    For cases that leave everything as it was and take less time than their set-up. A failure names its case.
    """
    found: list[dict[str, Any]] = [{}]
    for mark in vars(test).pop("pytestmark"):
        names, rows = mark.args
        if isinstance(names, str):
            names, rows = [names], [[value] for value in rows]
        found = [one | dict(zip(names, row, strict=True)) for one in found for row in rows]
    signature = inspect.signature(test)
    fixtures = [each for each in signature.parameters.values() if each.name not in found[0]]

    @functools.wraps(test)
    def run(*objects: Any, subtests: pytest.Subtests, **others: Any) -> None:
        for case in found:
            with _told(subtests, case):
                test(*objects, **others, **case)

    @functools.wraps(test)
    async def run_coroutine(*objects: Any, subtests: pytest.Subtests, **others: Any) -> None:
        for case in found:
            with _told(subtests, case):
                await test(*objects, **others, **case)

    made: Any = run_coroutine if inspect.iscoroutinefunction(test) else run
    wanted = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
    made.__signature__ = signature.replace(parameters=[*fixtures, wanted])
    return cast("Test", made)


@contextmanager
def _told(subtests: pytest.Subtests, case: dict[str, Any]) -> Iterator[None]:
    """Report a failing case as a subtest; a passing one would cost as much as a test."""
    try:
        yield
    except (Exception, pytest.skip.Exception):
        with subtests.test(**case):
            raise


@functools.cache
def sections(path: Path) -> dict[str, Rows]:
    """Return the values of each case, by the name of its test."""
    found: dict[str, Rows] = {}
    rows: Rows = []
    for line in path.read_text().split("\n"):
        if line.startswith("== "):
            rows = found["test_" + line[3:].replace(" ", "_")] = []
        elif line and not line.startswith("#"):
            rows.append(line.split(" → "))
    return found


def lines(module: str, test: str) -> list[str]:
    """Return the cases of a test with one value each; *module* is its `__file__`, *test* the test's name."""
    return [text for (text,) in sections(Path(module).with_suffix(".txt"))[test]]


def _value(text: str, make: Callable[[str], Any]) -> Any:
    return ast.literal_eval(text[1:]) if text.startswith("\\") else make(text)
