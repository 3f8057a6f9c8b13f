"""`streamfrom queues`, a table of a running proxy's reports; and `streamfrom top`: the queues, streams, shards and members of a running proxy on a whole terminal, sorted by its keys.

Both query by SQL like any client, so they show what the user may see. rich draws `top` on a second screen. Keys are read one by one, which rich does not do.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import time
import tty
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from streamfrom.proxy.backends.control_connection import Control
from streamfrom.proxy.config import dsn
from streamfrom.proxy.config.toml_values import Surroundings
from streamfrom.proxy.errors import BackendError, BackendUnavailable
from streamfrom.proxy.status.status_rows import TABLES
from streamfrom.proxy.status.terminal_tables import (
    VIEWS,
    StatusRecord,
    TableSample,
    table_lines,
    text_of,
)


if TYPE_CHECKING:
    from rich.console import Console

    from streamfrom.proxy.config.dsn import Dsn
    from streamfrom.proxy.status.terminal_tables import TerminalColumn

    Ask = Callable[[], Awaitable[list[StatusRecord]]]


UP, DOWN, TOP = "\x1b[A", "\x1b[B", "\x1b[H"
QUIT: Final = frozenset({"q", "Q", "\x03", "\x04"})
_HELP: Final = (
    "1 queues  2 streams  3 shards  4 members  < > sort  r reverse  ↑ ↓ scroll  q quit"
)


_NAMES: Final = tuple(VIEWS)


@dataclass(slots=True)
class TopScreen:
    """The shown table, and how it is sorted."""

    view: str = _NAMES[0]  # the table that is shown
    _sorted_by: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VIEWS, 0))
    _is_down: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(VIEWS, False))
    _first: int = 0
    _rows: Sequence[StatusRecord] = ()
    _at_s: float = 0.0
    _before: TableSample | None = None
    _fault: str = ""

    def told(self, view: str, rows: Sequence[StatusRecord], at_s: float) -> None:
        """Process the rows of a table, as they were at *at_s* of some clock; rows of a table that is no longer shown are dropped."""
        if view != self.view:
            return
        if view == "queues" and self._rows:
            self._before = TableSample(self._rows, self._at_s)
        self._rows, self._at_s, self._fault = rows, at_s, ""

    def failed(self, why: str) -> None:
        """Process the reason for a missing answer; the last answer stays."""
        self._fault = why

    def press(self, key: str) -> bool:
        """Handle a key; return whether to query another table."""
        if key in {"1", "2", "3", "4", "\t"}:
            at = (_NAMES.index(self.view) + 1) % len(_NAMES) if key == "\t" else int(key) - 1
            if _NAMES[at] == self.view:
                return False
            self.view, self._rows, self._before, self._first = _NAMES[at], (), None, 0
            return True
        last = len(VIEWS[self.view]) - 1
        if key in {"<", ">"}:
            by = self._sorted_by[self.view] + (1 if key == ">" else -1)
            self._sorted_by[self.view] = max(0, min(last, by))
            # Figures start with the largest, names with A.
            self._is_down[self.view] = self._column.show is not text_of
        elif key in {"r", "R"}:
            self._is_down[self.view] = not self._is_down[self.view]
        elif key in {UP, DOWN, "k", "j"}:
            step = 1 if key in {DOWN, "j"} else -1
            self._first = max(0, min(len(self._rows) - 1, self._first + step))
        elif key == TOP:
            self._first = 0
        return False

    def lines(self, width: int, height: int) -> list[str]:
        """Return the content for a terminal of this size: at most *height* lines, none wider than *width*."""
        from rich import cells

        title = "  ".join(f"[{view}]" if view == self.view else view for view in VIEWS)
        way = "↓" if self._is_down[self.view] else "↑"
        heading, *table = self._table()
        room = max(1, height - 5)
        self._first = max(0, min(self._first, len(table) - room))
        shown = [
            f"streamfrom top   {title}   by {self._column.heading} {way}",
            text_of(self._fault) if self._fault else "",
            heading,
            *table[self._first : self._first + room],
        ]
        shown += [""] * (height - 1 - len(shown)) + [_HELP]
        return [cells.set_cell_size(line, width).rstrip() for line in shown[:height]]

    @property
    def _column(self) -> TerminalColumn:
        return VIEWS[self.view][self._sorted_by[self.view]]

    def _table(self) -> list[str]:
        key = self._column.key
        # Unknown values come last, in either direction.
        known = sorted(
            (row for row in self._rows if row[key] is not None),
            key=lambda row: row[key],
            reverse=self._is_down[self.view],
        )
        rows = [*known, *(row for row in self._rows if row[key] is None)]
        return table_lines(self.view, TableSample(rows, self._at_s), self._before)


class CannotTell(OSError):
    """A proxy does not report its queues; the text names the proxy and the reason."""


def parse_address(text: str, environ: Mapping[str, str]) -> Dsn:
    """Return the proxy's address in *text*, which is written as a shard's. Raises ConfigError."""
    around = Surroundings(Path.cwd(), environ)
    return dsn.parse(text, "the proxy's address", database="", around=around)


def asks(control: Control, table: str = "queues") -> Ask:
    """Return a function that queries one of `TABLES` from the proxy of *control*, and raises CannotTell."""
    names = [column.name for column in TABLES[table]]
    question = f"SELECT {', '.join(names)} FROM streamfrom.{table}"  # noqa: S608 (constants)

    async def ask() -> list[StatusRecord]:
        try:
            rows = await control.rows(question)
        except BackendUnavailable as error:
            raise CannotTell(error.reason) from error
        except BackendError as error:
            raise CannotTell(str(error)) from error
        return [dict(zip(names, row, strict=True)) for row in rows]

    return ask


async def watch(address: Dsn, every_s: float | None, out: TextIO) -> None:
    """Show the queues of the proxy at *address*, as `show` does."""
    control = Control("", "", address)
    try:
        await show(asks(control), every_s, out)
    finally:
        await control.close()


async def show(
    ask: Ask,
    every_s: float | None,
    out: TextIO,
    now_s: Callable[[], float] = time.monotonic,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Write a table of the rows from *ask*: once, or repeatedly, *every_s* apart.

    The first table has totals, and each later one the rates since the one before. Raises CannotTell if there is no answer; a table that
    is repeated shows the reason instead, and continues.
    """
    before: TableSample | None = None
    with (
        _drawn_over(out)
        if every_s is not None and out.isatty()
        else nullcontext(out.write) as draw
    ):
        while True:
            try:
                sample = TableSample(await ask(), now_s())
            except CannotTell as fault:
                if every_s is None:
                    raise
                lines, before = [str(fault)], None
            else:
                lines, before = table_lines("queues", sample, before), sample
            draw("".join(f"{line}\n" for line in lines))
            out.flush()
            if every_s is None:
                return
            await pause(every_s)


@contextmanager
def _drawn_over(out: TextIO) -> Iterator[Callable[[str], object]]:
    """Yield a function that draws a text over the one before."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(file=out), auto_refresh=False) as live:
        yield lambda text: live.update(Text(text, no_wrap=True, overflow="crop"), refresh=True)


_READ_MAX: Final = 1024
# Some terminals send the second form of an arrow.
_NAMED: Final = {"\x1bOA": UP, "\x1bOB": DOWN, "\x1bOH": TOP, "\x1b[1~": TOP}


async def top(address: Dsn, every_s: float) -> None:
    """Show the reports of the proxy at *address*, every *every_s* seconds, until `q` is pressed.

    Raises CannotTell if there is no terminal, or no answer at first.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CannotTell("streamfrom top needs a terminal; streamfrom queues prints lines")
    control = Control("", "", address)
    try:
        questions = {view: asks(control, view) for view in VIEWS}
        screen = TopScreen()
        # Printed before the screen changes, while the shell is visible.
        screen.told(screen.view, await questions[screen.view](), time.monotonic())
        from rich.console import Console

        console = Console()
        with _keys() as keys, console.screen():
            await _run(screen, console, questions, keys, every_s)
    finally:
        await control.close()


async def _run(
    screen: TopScreen,
    console: Console,
    questions: Mapping[str, Ask],
    keys: asyncio.Queue[str],
    every_s: float,
) -> None:
    ask_s = time.monotonic() + every_s
    while True:
        _draw(screen, console)
        key = ""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, ask_s - time.monotonic())):
                key = await keys.get()
        if key in QUIT:
            return
        if key and not screen.press(key):
            continue
        await _ask(screen, questions[screen.view])
        ask_s = time.monotonic() + every_s


async def _ask(screen: TopScreen, question: Ask) -> None:
    view = screen.view
    try:
        screen.told(view, await question(), time.monotonic())
    except CannotTell as fault:
        screen.failed(str(fault))


def _draw(screen: TopScreen, console: Console) -> None:
    from rich.text import Text

    lines = screen.lines(console.size.width, console.size.height)
    # Line by line at its place: in a raw terminal the end of a line does not return to its beginning.
    console.update_screen(Text("\n".join(lines), no_wrap=True, overflow="crop"))


@contextmanager
def _keys() -> Iterator[asyncio.Queue[str]]:
    """Take over the terminal, and yield the pressed keys; "" means that its size has changed."""
    loop = asyncio.get_running_loop()
    keys: asyncio.Queue[str] = asyncio.Queue()
    stdin = sys.stdin.fileno()

    def pressed() -> None:
        data = os.read(stdin, _READ_MAX)
        for key in split_keys(data.decode(errors="replace")) if data else ["q"]:
            keys.put_nowait(key)

    before = termios.tcgetattr(stdin)
    # Ctrl-C is read as an ordinary key, so that the terminal is restored properly.
    tty.setraw(stdin)
    loop.add_reader(stdin, pressed)
    loop.add_signal_handler(signal.SIGWINCH, keys.put_nowait, "")
    loop.add_signal_handler(signal.SIGTERM, keys.put_nowait, "q")
    try:
        yield keys
    finally:
        loop.remove_reader(stdin)
        for number in (signal.SIGWINCH, signal.SIGTERM):
            loop.remove_signal_handler(number)
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)


def split_keys(text: str) -> list[str]:
    """Return the keys in a terminal's input: an escape sequence is one key."""
    keys = []
    while text:
        size = next((n for n in (4, 3) if text[:n] in {UP, DOWN, TOP, *_NAMED}), 1)
        keys.append(_NAMED.get(text[:size], text[:size]))
        text = text[size:]
    return keys
