"""The event of a log line is a constant, so that lines can be counted and alerted on; all that varies is a field."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest


ROOT = Path(__file__).parents[2]
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


def is_constant(event: ast.expr) -> bool:
    """Return whether an event is a text without a place for a value, or one of two such texts."""
    if isinstance(event, ast.IfExp):
        return is_constant(event.body) and is_constant(event.orelse)
    return isinstance(event, ast.Constant) and "%" not in str(event.value)


def log_calls(tree: ast.AST) -> Iterator[tuple[int, ast.expr]]:
    """Yield the line and the event of each call of a logger.

    Not those of a method that is such a call itself, as `SparingLog.warning`: its callers name the event.
    """
    for node in ast.iter_child_nodes(tree):
        if (
            isinstance(node, ast.FunctionDef)
            and node.name in LEVELS
            and [each.arg for each in node.args.args][1:2] == ["event"]
        ):
            continue
        yield from log_calls(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = ast.unparse(node.func.value).rpartition(".")[2].strip("_")
            if node.func.attr in LEVELS and name == "log":
                yield node.lineno, node.args[node.func.attr == "log"]


def violations(path: Path) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text()
    if "log." not in text:  # and needs no parsing
        return []
    calls = log_calls(ast.parse(text))
    return [f"{name}:{line}" for line, event in calls if not is_constant(event)]


def modules() -> list[Path]:
    found = (ROOT / "engine").rglob("*.py"), (ROOT / "proxy").rglob("*.py")
    return sorted(path for each in found for path in each)


def test_every_event_is_a_constant() -> None:
    assert [found for path in modules() for found in violations(path)] == []


@pytest.mark.parametrize(
    ("call", "is_fine"),
    [
        ("log.info('up')", True),
        ("self._log.log(level, 'up')", True),
        ("log.info('a' if x else 'b')", True),
        ("log.info(f'{shard} is up')", False),
        ("log.info('%s is up', shard)", False),
        ("self._log.log(level, text)", False),
    ],
)
def test_what_varies_is_seen(call: str, is_fine: bool) -> None:
    ((_, event),) = log_calls(ast.parse(call))
    assert is_constant(event) is is_fine
