"""The steps of docs/operations.md, "Ten troubles", as they are printed, one after the other."""

import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tests.fixtures.streams import Row, rows


if TYPE_CHECKING:
    from pymysql.connections import Connection


PAGE = Path(__file__).parents[3] / "docs/operations.md"
END_S = 120.0
_BLOCK = re.compile(r"^```(sql|sh|toml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Step(NamedTuple):
    """One block of the guide: what language it is in, and its text without the last newline."""

    language: str
    text: str


def troubles() -> dict[str, str]:
    """Return what the guide says of each trouble, by its heading."""
    _, _, rest = PAGE.read_text().partition("\n### Ten troubles\n")
    guide, _, _ = rest.partition("\n### ")
    parts = re.split(r"^#### (.+)$", guide, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


class Guide:
    """Plays the steps of one trouble in order: `with Guide("A paused queue") as guide`.

    Every step is to be played: what is left at the end of the `with` block fails the test.
    """

    def __init__(self, heading: str) -> None:
        self.text = troubles()[heading]
        self._steps = [Step(*found) for found in _BLOCK.findall(self.text)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert kind is not None or not self._steps, f"nobody plays {self._steps}"

    def sql(
        self, client: "Connection[Any]", put: Mapping[str, object] | None = None
    ) -> tuple[Row, ...]:
        """Run the next step, SQL; return what its last statement gives.

        put: what stands in place of an id or a name that the guide has for an example.
        """
        text = self._next("sql", put or {})
        found: tuple[Row, ...] = ()
        for statement in text.rstrip(";\n").split(";\n"):
            found = rows(client, statement)
        return found

    def run(self, put: Mapping[str, object]) -> str:
        """Run the next step, a command; return what it says, whether it likes what it finds or not."""
        words = shlex.split(self._next("sh", put))
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=END_S)
        return done.stdout + done.stderr

    def told(self, *commands: str) -> None:
        """Take the next step, commands that the test does in its own way."""
        assert self._next("sh", {}) == "\n".join(commands)

    def toml(self) -> str:
        """Return the next step, lines of a configuration."""
        return self._next("toml", {})

    def _next(self, language: str, put: Mapping[str, object]) -> str:
        step = self._steps.pop(0)
        assert step.language == language, step
        text = step.text.rstrip("\n")
        for example, value in put.items():
            assert text.count(example) == 1, f"{example} in {text}"
            text = text.replace(example, str(value))
        return text
