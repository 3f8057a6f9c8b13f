"""`streamfrom top`: the queues, streams, shards and members of a running proxy on a whole terminal, sorted by its keys.

What it needs of a terminal every one has (ECMA-48): a second screen, the cursor's place, and keys as they are pressed. So no
library draws it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import termios
import time
import tty
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.control_connection import Control
from streamfrom.proxy.queue_watch import CannotTell, asks
from streamfrom.proxy.status.top_screen import DOWN, QUIT, TOP, UP, VIEWS, TopScreen


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamfrom.proxy.config.dsn import Dsn
    from streamfrom.proxy.queue_watch import Ask


_BEGIN: Final = "\x1b[?1049h\x1b[?25l"
_END: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_READ_MAX: Final = 1024
# Some terminals send the second form of an arrow.
_NAMED: Final = {"\x1bOA": UP, "\x1bOB": DOWN, "\x1bOH": TOP, "\x1b[1~": TOP}


async def top(address: Dsn, every_s: float) -> None:
    """Show what the proxy at *address* tells, each *every_s* anew, until `q` is pressed.

    Raises:
        CannotTell: there is no terminal, or nothing was told at first.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CannotTell("streamfrom top needs a terminal; streamfrom queues prints lines")
    control = Control("", "", address)
    try:
        questions = {view: asks(control, view) for view in VIEWS}
        screen = TopScreen()
        # Told before the screen changes, where the shell is seen.
        screen.told(screen.view, await questions[screen.view](), time.monotonic())
        with _keys() as keys:
            await _run(screen, questions, keys, every_s)
    finally:
        await control.close()


async def _run(
    screen: TopScreen, questions: Mapping[str, Ask], keys: asyncio.Queue[str], every_s: float
) -> None:
    ask_s = time.monotonic() + every_s
    while True:
        _draw(screen)
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


def _draw(screen: TopScreen) -> None:
    size = shutil.get_terminal_size()
    lines = screen.lines(size.columns, size.lines)
    # No line's end after the last one, or the screen would scroll.
    sys.stdout.write(_HOME + "\r\n".join(f"{line}{_REST_OF_LINE}" for line in lines))
    sys.stdout.flush()


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
    sys.stdout.write(_BEGIN)
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
        sys.stdout.write(_END)
        sys.stdout.flush()


def split_keys(text: str) -> list[str]:
    """Return the keys in what a terminal sent: an escape sequence is one key."""
    keys = []
    while text:
        size = next((n for n in (4, 3) if text[:n] in {UP, DOWN, TOP, *_NAMED}), 1)
        keys.append(_NAMED.get(text[:size], text[:size]))
        text = text[size:]
    return keys
