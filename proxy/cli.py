"""The command line: `streamfrom serve | check | demo`.

Exit codes: 0 when all is well, 1 for a fault that `check` found or a failure while running,
2 for a wrong command line or configuration.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from streamfrom import __version__
from streamfrom.proxy import log
from streamfrom.proxy.app.application import Application, run
from streamfrom.proxy.check import check
from streamfrom.proxy.config.file import Config, ConfigError, load
from streamfrom.proxy.demo import run_demo
from streamfrom.proxy.report import CheckReport
from streamfrom.sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


COMMANDS = ("serve", "check", "demo")
EXIT_FAULT = 1
EXIT_USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    arguments = _parser().parse_args(_command_first(sys.argv[1:] if argv is None else argv))
    # The report of `check` says it all; the log would say it again in between.
    log.configure(verbose=arguments.verbose, quiet=arguments.command == "check")
    try:
        if arguments.command == "demo":
            return run_demo(arguments.shards, arguments.port, arguments.data, Application)
        read = partial(load, arguments.config, os.environ)
        config = read()
        if arguments.command == "check":
            return uvloop.run(check(config, as_json=arguments.json))
        return uvloop.run(_serve(config, read))
    except ConfigError as error:
        faults = (error, *error.others)
        for each in faults:
            _fail(f"{arguments.config}: {each}", EXIT_USAGE)
        if arguments.command == "check" and arguments.json:
            report = CheckReport()
            for each in faults:
                report.fault(each.key or "config", each.problem)
            sys.stdout.write(report.json() + "\n")
        return EXIT_USAGE
    except (OSError, StreamfromError) as error:
        return _fail(str(error), EXIT_FAULT)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="streamfrom",
        description="Vitess-style messaging in front of MySQL and MariaDB.",
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-v", "--verbose", action="store_true", help="log every decision")
    for place in (parser, common):
        place.add_argument("--version", action="version", version=f"streamfrom {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", parents=[common], help="run the proxy")
    serve.add_argument("--config", type=Path, required=True, metavar="FILE")
    checking = commands.add_parser(
        "check", parents=[common], help="check config, backends, privileges and message tables"
    )
    checking.add_argument("--config", type=Path, required=True, metavar="FILE")
    checking.add_argument("--json", action="store_true", help="print one JSON document")
    showing = commands.add_parser(
        "demo", parents=[common], help="run a proxy with its own database servers"
    )
    showing.add_argument("--shards", type=int, default=2, metavar="N")
    showing.add_argument("--port", type=int, default=15306, metavar="P")
    showing.add_argument("--data", type=Path, metavar="DIR", help="keep the data there")
    return parser


def _command_first(argv: Sequence[str]) -> Sequence[str]:
    """Return *argv* with its command before all options: argparse takes the options of a command only after it.

    Where several words could be the command, as in `--data demo check`, nothing is guessed: argparse wants it first.
    """
    match [place for place, word in enumerate(argv) if word in COMMANDS]:
        case [place]:
            return [argv[place], *argv[:place], *argv[place + 1 :]]
        case _:
            return argv


async def _serve(config: Config, read_again: Callable[[], Config]) -> int:
    stop, hangup, hurry = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def end() -> None:
        """Stop; the second time without waiting for anybody."""
        (hurry if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    for number, act in (
        (signal.SIGINT, end),
        (signal.SIGTERM, end),
        (signal.SIGHUP, hangup.set),
    ):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, act)
    await run(config, stop, hangup, hurry, read_again)
    return 0


def _fail(sentence: str, code: int) -> int:
    sys.stderr.write(f"streamfrom: {sentence}\n")
    return code
