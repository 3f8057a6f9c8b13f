"""`streamfrom top`: the queues, streams, shards and members of a running proxy on a whole terminal, sorted by its keys.

rich draws it on a second screen. Keys are read as they are pressed, which rich does not do.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.control_connection import Control
from streamfrom.proxy.commands.queue_watch import CannotTell, asks
from streamfrom.proxy.status.terminal_tables import VIEWS
from streamfrom.proxy.status.top_screen import DOWN, QUIT, TOP, UP, TopScreen


if TYPE_CHECKING:
    from rich.console import Console

    from streamfrom.proxy.commands.queue_watch import Ask
    from streamfrom.proxy.config.dsn import Dsn


_READ_MAX: Final = 1024
# Some terminals send the second form of an arrow.
_NAMED: Final = {"\x1bOA": UP, "\x1bOB": DOWN, "\x1bOH": TOP, "\x1b[1~": TOP}


async def top(address: Dsn, every_s: float) -> None:
    """Show what the proxy at *address* reports, each *every_s*, until `q` is pressed.

    Raises:
        CannotTell: there is no terminal, or there was no answer at first.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CannotTell("streamfrom top needs a terminal; streamfrom queues prints lines")
    control = Control("", "", address)
    try:
        questions = {view: asks(control, view) for view in VIEWS}
        screen = TopScreen()
        # Printed before the screen changes, where the shell is seen.
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
    # Line by line at its place: the terminal is raw, where a line's end does not go back to its begin.
    console.update_screen(Text("\n".join(lines), no_wrap=True, overflow="crop"))


@contextmanager
def _keys() -> Iterator[asyncio.Queue[str]]:
    """Take over the terminal, and yield what is pressed; "" says that its size has changed."""
    loop = asyncio.get_running_loop()
    keys: asyncio.Queue[str] = asyncio.Queue()
    stdin = sys.stdin.fileno()

    def pressed() -> None:
        data = os.read(stdin, _READ_MAX)
        for key in split_keys(data.decode(errors="replace")) if data else ["q"]:
            keys.put_nowait(key)

    before = termios.tcgetattr(stdin)
    # Ctrl-C is a key as any other, so that the terminal is given back in order.
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
    """Return the keys in what a terminal sent: an escape sequence is one key."""
    keys = []
    while text:
        size = next((n for n in (4, 3) if text[:n] in {UP, DOWN, TOP, *_NAMED}), 1)
        keys.append(_NAMED.get(text[:size], text[:size]))
        text = text[size:]
    return keys
