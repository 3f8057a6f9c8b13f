"""`streamfrom queues`: what a running proxy reports of its queues, as a table on a terminal.

It asks as any client does, by SQL, so it shows what the user may see.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from streamfrom.proxy.backends.control_connection import Control
from streamfrom.proxy.config import dsn
from streamfrom.proxy.config.toml_values import Surroundings
from streamfrom.proxy.errors import BackendError, BackendUnavailable
from streamfrom.proxy.status.status_rows import TABLES
from streamfrom.proxy.status.terminal_tables import StatusRecord, TableSample, table_lines


if TYPE_CHECKING:
    from streamfrom.proxy.config.dsn import Dsn

    Ask = Callable[[], Awaitable[list[StatusRecord]]]


class CannotTell(OSError):
    """A proxy does not report its queues; the text says where and why."""


def parse_address(text: str, environ: Mapping[str, str]) -> Dsn:
    """Return the proxy's address in *text*, which is written as a shard's. Raises ConfigError."""
    around = Surroundings(Path.cwd(), environ)
    return dsn.parse(text, "the proxy's address", database="", around=around)


def asks(control: Control, table: str = "queues") -> Ask:
    """Return what asks the proxy that *control* connects to for one of `TABLES`, and raises CannotTell."""
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
    """Show the queues of the proxy at *address*; as of `show`."""
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
    """Write a table of what *ask* returns: once, or again and again, *every_s* apart.

    The first table has totals, and each later one the rates since the one before.

    Raises:
        CannotTell: there was no answer. If the table is repeated, the reason is shown instead, and it goes on.
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
    """Yield what draws a text over the one before."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(file=out), auto_refresh=False) as live:
        yield lambda text: live.update(Text(text, no_wrap=True, overflow="crop"), refresh=True)
